/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The output of a command in the selected format: findings, which are sentences, then tables with typed columns. */
#pragma once

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
/* Values that are unknown if they are empty or 0 */
#define V_TEXT_IF(x) (*(x) ? V_TEXT(x) : V_NONE)
#define V_U64_IF(x)  ((x) ? V_U64(x) : V_NONE)
/* NULL is an unknown value. */
static inline struct value value__text(const char *text)
{
	return text ? (struct value){ .type = VALUE_TEXT, .text = text } : V_NONE;
}

/* How tables for people show a value; CSV and JSON have the plain number in the unit that the key names. */
enum column_show {
	SHOW_PLAIN, /* 4711 */
	SHOW_COUNT, /* 1,234,567 */
	SHOW_NS, /* 1.234 ms */
	SHOW_BYTES, /* 1.50 MiB */
	SHOW_PERCENT, /* 12.3: a double from 0 to 100 */
	SHOW_GIGA, /* 1.234 for 1,234,000,000, with three decimals */
	SHOW_HEX, /* 0x7f00deadbeef; a number in JSON */
	SHOW_SECONDS, /* ns as 12.345678 */
	SHOW_STRIP, /* a text whose characters are parts of the time: never shortened */
	SHOW_NEVER, /* for machines only */
	SHOW_OPTION, /* an option of sonde: CSV does not quote its leading '-' */
};

/* Returns a value for SHOW_PERCENT; 0 if whole is 0. */
static inline double table__percent(u64 part, u64 whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

struct column {
	const char *key; /* key in JSON and CSV, with the unit: "wait_ns" */
	const char *heading;
	enum value_type type;
	enum column_show show;
};

struct table {
	const char *name; /* JSON key */
	const char *title; /* what it shows, for people */
	const struct column *columns;
	u32 n_columns;
	struct value *cells; /* n_rows times n_columns; the table owns the texts */
	u32 n_rows, allocated;
	const char *details; /* keys of columns for which a narrow line has no room; NULL: the usual ones */
	u32 limit; /* rows shown to people unless -n is given, 0: all */
	struct column *own_columns; /* `columns` is this after table__insert; else NULL */
	bool machine_only; /* only in CSV and JSON */
	bool drops_rows; /* takes no rows, as the requested format omits the table */
	bool failed; /* there was no memory for a row */
	struct table *next;
};

/* Adds a row of V_... values, one for each column and of its type, or V_NONE. Texts are copied. */
#define table__add(table, ...)                                       \
	table__add_row(table, (const struct value[]){ __VA_ARGS__ }, \
		       sizeof((const struct value[]){ __VA_ARGS__ }) / sizeof(struct value))
void table__add_row(struct table *t, const struct value *values, size_t n);
/* Returns the cells of a row. */
struct value *table__row(const struct table *t, u32 row);
/*
 * Inserts a column at index `at`; fn gets each old row and returns its value (no text). Without memory the table is
 * unchanged and marked as failed.
 */
void table__insert(struct table *t, u32 at, const struct column *column,
		   struct value (*fn)(const struct value *row, void *arg), void *arg);
/* Changes how people see a column, such as one that is hidden unless the trace has values for it. */
void table__show(struct table *t, const char *key, enum column_show show);
/* Returns the index of a column by key or heading, in any case of letters; -1: there is none. */
int table__column(const struct table *t, const char *name);
/*
 * Sorts by a column: numbers largest first, texts from A to Z; `-COLUMN` in descending, `+COLUMN` in ascending order.
 * Equal rows keep their order. Returns 0, -ENOENT for an unknown column, or -ENOMEM.
 */
int table__sort(struct table *t, const char *column);

enum output_format { OUTPUT_TABLE, OUTPUT_CSV, OUTPUT_JSON };

struct output_options {
	enum output_format format;
	const char *sort; /* NULL: the report's order */
	s64 rows; /* -1: the tables' own limits, 0: all */
	bool color;
	u32 width; /* characters of a line, into which findings and tables for people fit; 0: no limit */
};

/* The source of the output, such as a trace with its losses, which every format states; all NULL: there is none. */
struct report_origin {
	/* Prints the last lines of the output, each with the prefix. */
	void (*print)(FILE *file, const struct output_options *options, const char *prefix, const void *arg);
	/* Writes members of the outermost object. */
	void (*json)(struct json_writer *w, const void *arg);
	const void *arg;
};

/* A number or text that a finding states; the key has its unit, as the key of a column has. */
struct figure {
	const char *key; /* lives as long as the program */
	struct value value; /* the finding owns a text */
};

struct report_finding {
	char *text;
	size_t sentence; /* length of the text without the command that follows it */
	u16 *clauses; /* where in the text each clause after the headline begins; NULL: it is not in clauses */
	u32 n_clauses;
	struct figure *figures;
	u32 n_figures;
	struct figure *fields; /* members of the finding in JSON: "code.line" is line of object code */
	u32 n_fields;
};

struct report_output {
	const char *name; /* the report's name */
	struct report_finding *findings; /* lines before the tables */
	u32 n_findings;
	char **notes; /* lines after the tables */
	u32 n_notes;
	struct table *tables;
	struct report_origin origin;
	bool failed; /* memory ran out: the output would be incomplete */
	bool for_people; /* printed as tables, so REPORT_MACHINE_TABLE's take no rows */
};

void report_output__finding(struct report_output *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* States where the clauses of the last finding begin: each is a line for people. */
void report_output__clauses(struct report_output *out, const u16 *clauses, u32 n);
/* Copies the i-th clause, or the headline (0), without what ends it; NULL: no memory. */
char *report_finding__clause(const struct report_finding *f, u32 i);
/* Adds the command that shows more to the text of the last finding. */
void report_output__next(struct report_output *out, const char *command);
/* Adds figures to the last finding: a list of FIGURE(key, V_...). Texts are copied. */
#define FIGURE(key, value) ((struct figure){ key, value })
#define REPORT_FIGURES(out, ...)                                            \
	report_output__figures(out, (const struct figure[]){ __VA_ARGS__ }, \
			       sizeof((const struct figure[]){ __VA_ARGS__ }) / sizeof(struct figure))
void report_output__figures(struct report_output *out, const struct figure *figures, size_t n);
/* Adds fields to the last finding: a list of FIELD(key, V_...), those of one object in a row. Texts are copied. */
#define FIELD(key, value) ((struct figure){ key, value })
#define REPORT_FIELDS(out, ...)                                            \
	report_output__fields(out, (const struct figure[]){ __VA_ARGS__ }, \
			      sizeof((const struct figure[]){ __VA_ARGS__ }) / sizeof(struct figure))
void report_output__fields(struct report_output *out, const struct figure *fields, size_t n);
/* Adds a copy of another output's finding. */
void report_output__take(struct report_output *out, const struct report_finding *finding);
/* Returns a field that has a value, or NULL. */
const struct value *report_finding__field(const struct report_finding *f, const char *key);
/*
 * Copies "app.py:26: with lock:", the source text of a line that the finding names; object: "code", "counterpart"
 * (the code of the thread that made others wait) or "activity_code" (what it did meanwhile). NULL: it names none, its
 * text is not known, or an earlier object has the same.
 */
char *report_finding__quote(const struct report_finding *f, const char *object);
void report_output__note(struct report_output *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a table; name, title and columns must outlive it. Never NULL: without memory the table takes no rows. */
struct table *report_output__table(struct report_output *out, const char *name, const char *title,
				   const struct column *columns, u32 n_columns);
#define REPORT_TABLE(out, name, title, columns) report_output__table(out, name, title, columns, ARRAY_LEN(columns))
/* Adds a table that only CSV and JSON show. */
struct table *report_output__machine_table(struct report_output *out, const char *name, const char *title,
					   const struct column *columns, u32 n_columns);
#define REPORT_MACHINE_TABLE(out, name, title, columns) \
	report_output__machine_table(out, name, title, columns, ARRAY_LEN(columns))
/* Sorts every table that has this column, as table__sort does. Returns -ENOENT if none has it. */
int report_output__sort(struct report_output *out, const char *column);
void report_output__free(struct report_output *out);
/* Frees findings and notes (findings.c). */
void report_output__free_lines(struct report_output *out);
/* Did memory run out for the output or one of its tables? */
bool report_output__failed(const struct report_output *out);

/* Writes the whole output. Returns 0 or, if a write failed, negative errno. */
int report_output__print(const struct report_output *out, const struct output_options *options, FILE *file);
