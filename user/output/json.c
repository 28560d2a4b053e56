// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Prints a report as one JSON object. */
#include <stdio.h>
#include <string.h>

#include <stdlib.h>

#include "output/print.h"

static void add_value(struct json_writer *w, const char *key, const struct value *v)
{
	switch (v->type) {
	case VALUE_U64:
		json_writer__u64(w, key, v->u);
		break;
	case VALUE_S64:
		json_writer__s64(w, key, v->s);
		break;
	case VALUE_DOUBLE:
		json_writer__double(w, key, v->d);
		break;
	default:
		json_writer__text(w, key, v->type == VALUE_TEXT ? v->text : NULL);
	}
}

/* Key "code.line" becomes member "line" of object "code". */
static void add_fields(struct json_writer *w, const struct report_finding *f)
{
	char object[32] = "";

	for (u32 i = 0; i < f->n_fields; i++) {
		const char *key = f->fields[i].key, *dot = strchr(key, '.');
		size_t len = dot ? (size_t)(dot - key) : 0;

		if (strlen(object) != len || strncmp(object, key, len) != 0) {
			if (*object)
				json_writer__end(w);
			snprintf(object, sizeof(object), "%.*s", (int)len, key);
			if (*object)
				json_writer__object(w, object);
		}
		add_value(w, dot ? dot + 1 : key, &f->fields[i].value);
	}
	if (*object)
		json_writer__end(w);
}

static void add_clause(struct json_writer *w, const char *key, const struct report_finding *f, u32 i)
{
	char *clause = report_finding__clause(f, i);

	json_writer__text(w, key, clause ? clause : "?");
	free(clause);
}

/* The finding in parts, if it has a headline */
static void add_clauses(struct json_writer *w, const struct report_finding *f)
{
	if (!f->n_fields)
		return;
	add_clause(w, "headline", f, 0);
	json_writer__list(w, "evidence");
	for (u32 i = 1; i <= f->n_clauses; i++)
		add_clause(w, NULL, f, i);
	json_writer__end(w);
}

static void add_findings(struct json_writer *w, const struct report_output *out)
{
	json_writer__list(w, "findings");
	for (u32 i = 0; i < out->n_findings; i++) {
		const struct report_finding *f = &out->findings[i];

		json_writer__object(w, NULL);
		json_writer__text(w, "text", f->text);
		add_clauses(w, f);
		add_fields(w, f);
		json_writer__object(w, "figures");
		for (u32 k = 0; k < f->n_figures; k++)
			add_value(w, f->figures[k].key, &f->figures[k].value);
		json_writer__end(w);
		json_writer__end(w);
	}
	json_writer__end(w);
}

static void add_notes(struct json_writer *w, const struct report_output *out)
{
	json_writer__list(w, "notes");
	for (u32 i = 0; i < out->n_notes; i++)
		json_writer__text(w, NULL, out->notes[i]);
	json_writer__end(w);
}

static void add_table(struct json_writer *w, const struct table *t, s64 rows)
{
	json_writer__list(w, t->name);
	for (u32 i = 0; i < print__rows(t, rows, false); i++) {
		json_writer__object(w, NULL);
		for (u32 c = 0; c < t->n_columns; c++)
			add_value(w, t->columns[c].key, &table__row(t, i)[c]);
		json_writer__end(w);
	}
	json_writer__end(w);
}

void print__json(const struct report_output *out, const struct output_options *options, FILE *file)
{
	struct json_writer w = { .file = file };
	bool of_trace = out->origin.json;

	json_writer__object(&w, NULL);
	json_writer__text(&w, "report", out->name);
	if (of_trace)
		out->origin.json(&w, out->origin.arg);
	/* Output without a trace, such as that of `sonde list`, has these keys only if they are not empty. */
	if (of_trace || out->n_findings)
		add_findings(&w, out);
	if (of_trace || out->n_notes)
		add_notes(&w, out);
	json_writer__object(&w, "tables");
	for (const struct table *t = out->tables; t; t = t->next)
		add_table(&w, t, options->rows);
	json_writer__end(&w);
	json_writer__end(&w);
}
