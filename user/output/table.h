/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The output of a command: findings as sentences, then tables of typed columns, in the format that the command
 * line selects.
 */
#ifndef SONDE_OUTPUT_TABLE_H
#define SONDE_OUTPUT_TABLE_H

#include <stdio.h>

#include "output/json_writer.h"
#include "util/array.h"

enum value_type {
	VALUE_NONE, /* unknown: "-", an empty CSV field, null */
	VALUE_U64,
	VALUE_S64,
	VALUE_DOUBLE,
	VALUE_TEXT, /* may hold any bytes: escaped when printed */
};

struct value {
	enum value_type type;
	union {
		u64 u;
		s64 s;
		double d;
		const char *text;
	};
};

#define V_NONE	  ((struct value){ .type = VALUE_NONE })
#define V_U64(x)  ((struct value){ .type = VALUE_U64, .u = (x) })
#define V_S64(x)  ((struct value){ .type = VALUE_S64, .s = (x) })
#define V_DBL(x)  ((struct value){ .type = VALUE_DOUBLE, .d = (x) })
#define V_TEXT(x) (value__text(x))
/* NULL: unknown */
static inline struct value value__text(const char *text)
{
	return text ? (struct value){ .type = VALUE_TEXT, .text = text } : V_NONE;
}

/* The format in tables for people; CSV and JSON have the plain number in the unit that the key names. */
enum column_show {
	SHOW_PLAIN, /* 4711 */
	SHOW_COUNT, /* 1,234,567 */
	SHOW_NS, /* 1.234 ms */
	SHOW_BYTES, /* 1.50 MiB */
	SHOW_PERCENT, /* 12.3: a double from 0 to 100 */
	SHOW_HEX, /* 0x7f00deadbeef; a JSON number all the same */
	SHOW_SECONDS, /* ns as 12.345678 */
	SHOW_LONG, /* a text in the last column that a terminal's width cuts */
	SHOW_NEVER, /* for machines only */
	SHOW_OPTION, /* an option of sonde's own: CSV has it as it is, though it begins with '-' */
};

/* For SHOW_PERCENT: 0 of nothing */
static inline double table__percent(u64 part, u64 whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

struct column {
	const char *key; /* JSON and CSV, with the unit: "wait_ns" */
	const char *heading;
	enum value_type type;
	enum column_show show;
};

struct table {
	const char *name; /* JSON key */
	const char *title; /* what it shows, for people */
	const struct column *columns;
	u32 n_columns;
	struct value *cells; /* n_rows times n_columns; texts are ours */
	u32 n_rows, allocated;
	u32 limit; /* rows shown to people unless -n is given, 0: all */
	struct column *own_columns; /* columns is this, after table__insert; else NULL */
	bool machine_only; /* only in CSV and JSON: the same figures in other groups */
	bool failed; /* no memory for a row */
	struct table *next;
};

/* Rows are handed over as a list of V_..., one a column and of its type or V_NONE. Texts are copied. */
#define table__add(table, ...)                                       \
	table__add_row(table, (const struct value[]){ __VA_ARGS__ }, \
		       sizeof((const struct value[]){ __VA_ARGS__ }) / sizeof(struct value))
void table__add_row(struct table *t, const struct value *values, size_t n);
/* Cells of a row */
struct value *table__row(const struct table *t, u32 row);
/*
 * Inserts a column at index `at`; fn returns each row's value (no text) and gets the row as it was. Without memory
 * the table stays as it is and is marked as failed.
 */
void table__insert(struct table *t, u32 at, const struct column *column,
		   struct value (*fn)(const struct value *row, void *arg), void *arg);
/* Index of a column by key or heading (case does not matter), -1: none. */
int table__column(const struct table *t, const char *name);
/*
 * By column: figures largest first, texts from A to Z; `-COLUMN` largest or last first, `+COLUMN`
 * smallest first. Rows that are equal keep their order. 0, -ENOENT: no such column, -ENOMEM.
 */
int table__sort(struct table *t, const char *column);

/* Output options of the command line: how many rows, in which format. */
enum output_format { OUTPUT_TABLE, OUTPUT_CSV, OUTPUT_JSON };

struct output_options {
	enum output_format format;
	const char *sort; /* NULL: as the report has it */
	s64 rows; /* -1: the tables' own limits, 0: all */
	bool color;
};

/* What the output is of, such as a trace with its losses: every format says it. All NULL: of nothing. */
struct report_origin {
	/* Lines behind all others, each with the prefix. */
	void (*print)(FILE *file, const struct output_options *options, const char *prefix, const void *arg);
	/* Members of the outermost object. */
	void (*json)(struct json_writer *w, const void *arg);
	const void *arg;
};

/* A number or text that a finding states, with its unit in the key as columns have it */
struct figure {
	const char *key; /* lives as long as the program */
	struct value value; /* a text is ours */
};

struct report_finding {
	char *text;
	struct figure *figures;
	u32 n_figures;
};

struct report_output {
	const char *name; /* the report's */
	struct report_finding *findings; /* lines before the tables */
	u32 n_findings;
	char **notes; /* lines after them */
	u32 n_notes;
	struct table *tables;
	struct report_origin origin;
	bool failed; /* memory ran out: the output would be incomplete */
};

void report_output__finding(struct report_output *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The figures of the last finding, for machines: a list of FIGURE(key, V_...). Texts are copied. */
#define FIGURE(key, value) ((struct figure){ key, value })
#define REPORT_FIGURES(out, ...)                                            \
	report_output__figures(out, (const struct figure[]){ __VA_ARGS__ }, \
			       sizeof((const struct figure[]){ __VA_ARGS__ }) / sizeof(struct figure))
void report_output__figures(struct report_output *out, const struct figure *figures, size_t n);
/* Adds another output's finding with its figures. */
void report_output__take(struct report_output *out, const struct report_finding *finding);
void report_output__note(struct report_output *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A new table at the end; name, title and columns must outlive it. Never NULL: without memory a row-less one is shared. */
struct table *report_output__table(struct report_output *out, const char *name, const char *title,
				   const struct column *columns, u32 n_columns);
#define REPORT_TABLE(out, name, title, columns) report_output__table(out, name, title, columns, ARRAY_LEN(columns))
/* Sorts every table that has such a column. -ENOENT: none has. */
int report_output__sort(struct report_output *out, const char *column);
void report_output__free(struct report_output *out);
/* findings.c: frees findings and notes */
void report_output__free_lines(struct report_output *out);
/* No memory anywhere? */
bool report_output__failed(const struct report_output *out);

/* Writes it all. 0, or negative errno: the last is a failed write. */
int report_output__print(const struct report_output *out, const struct output_options *options, FILE *file);

#endif
