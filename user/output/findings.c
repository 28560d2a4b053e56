// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The sentences of a report: findings, with the figures that they state, and notes. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "output/table.h"
#include "util/array.h"

/* Returns NULL without memory. */
static char *format_text(const char *format, va_list args)
{
	char *text;

	return vasprintf(&text, format, args) < 0 ? NULL : text;
}

static void add_finding(struct report_output *out, char *text)
{
	if (text && array__push(out->findings, out->n_findings,
				(struct report_finding){ .text = text, .sentence = strlen(text) }))
		return;
	out->failed = true;
	free(text);
}

void report_output__finding(struct report_output *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add_finding(out, format_text(format, args));
	va_end(args);
}

void report_output__clauses(struct report_output *out, const u16 *clauses, u32 n)
{
	struct report_finding *f = out->n_findings ? &out->findings[out->n_findings - 1] : NULL;

	for (u32 i = 0; f && i < n; i++)
		out->failed = !array__push(f->clauses, f->n_clauses, clauses[i]) || out->failed;
}

char *report_finding__clause(const struct report_finding *f, u32 i)
{
	size_t from = i ? f->clauses[i - 1] : 0, to = i < f->n_clauses ? f->clauses[i] : f->sentence;

	while (to > from && strchr(" ;:.", f->text[to - 1]))
		to--;
	return strndup(f->text + from, to - from);
}

void report_output__next(struct report_output *out, const char *command)
{
	struct report_finding *f = out->n_findings ? &out->findings[out->n_findings - 1] : NULL;
	char *text;

	if (!f)
		return;
	if (asprintf(&text, "%s Next: `%s`.", f->text, command) < 0) {
		out->failed = true;
		return;
	}
	free(f->text);
	f->text = text;
}

static bool add_figure(struct figure **list, u32 *n, const struct figure *figure)
{
	bool is_text = figure->value.type == VALUE_TEXT;
	char *text = is_text ? strdup(figure->value.text) : NULL;

	if ((is_text && !text) || !array__push(*list, *n, *figure)) {
		free(text);
		return false;
	}
	if (is_text)
		(*list)[*n - 1].value.text = text;
	return true;
}

void report_output__figures(struct report_output *out, const struct figure *figures, size_t n)
{
	struct report_finding *f = out->n_findings ? &out->findings[out->n_findings - 1] : NULL;

	for (size_t i = 0; f && i < n; i++)
		out->failed = !add_figure(&f->figures, &f->n_figures, &figures[i]) || out->failed;
}

void report_output__fields(struct report_output *out, const struct figure *fields, size_t n)
{
	struct report_finding *f = out->n_findings ? &out->findings[out->n_findings - 1] : NULL;

	for (size_t i = 0; f && i < n; i++)
		out->failed = !add_figure(&f->fields, &f->n_fields, &fields[i]) || out->failed;
}

void report_output__take(struct report_output *out, const struct report_finding *finding)
{
	u32 n = out->n_findings;

	add_finding(out, strdup(finding->text));
	if (out->n_findings == n)
		return;
	out->findings[n].sentence = finding->sentence;
	report_output__clauses(out, finding->clauses, finding->n_clauses);
	report_output__figures(out, finding->figures, finding->n_figures);
	report_output__fields(out, finding->fields, finding->n_fields);
}

void report_output__note(struct report_output *out, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = format_text(format, args);
	va_end(args);
	if (text && array__push(out->notes, out->n_notes, text))
		return;
	out->failed = true;
	free(text);
}

static void free_figures(struct figure *list, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (list[i].value.type == VALUE_TEXT)
			free((char *)list[i].value.text);
	free(list);
}

void report_output__free_lines(struct report_output *out)
{
	for (u32 i = 0; i < out->n_findings; i++) {
		struct report_finding *f = &out->findings[i];

		free_figures(f->figures, f->n_figures);
		free_figures(f->fields, f->n_fields);
		free(f->clauses);
		free(f->text);
	}
	for (u32 i = 0; i < out->n_notes; i++)
		free(out->notes[i]);
	free(out->findings);
	free(out->notes);
}
