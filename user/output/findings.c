// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The sentences of a report: findings, with the figures that they state, and notes. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/table.h"
#include "util/array.h"
#include "util/path.h"
#include "util/utf8.h"

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

const struct value *report_finding__field(const struct report_finding *f, const char *key)
{
	for (u32 i = 0; i < f->n_fields; i++)
		if (!strcmp(f->fields[i].key, key) && f->fields[i].value.type != VALUE_NONE)
			return &f->fields[i].value;
	return NULL;
}

static const struct value *field_of(const struct report_finding *f, const char *object, const char *name)
{
	char key[64];

	snprintf(key, sizeof(key), "%s.%s", object, name);
	return report_finding__field(f, key);
}

#define QUOTE_MAX 100 /* bytes of the line */

static char *quote_of(const struct report_finding *f, const char *object)
{
	const struct value *file = field_of(f, object, "file"), *line = field_of(f, object, "line");
	const struct value *source = field_of(f, object, "source");
	char text[QUOTE_MAX + 1], *place, *quote = NULL;
	bool is_cut;

	if (!file || !line || !source)
		return NULL;
	is_cut = strlen(source->text) > QUOTE_MAX;
	utf8__copy(text, is_cut ? sizeof(text) - 3 : sizeof(text), source->text);
	if (asprintf(&place, "%s:%llu", path__file_name(file->text), line->u) < 0)
		return NULL;
	/* some sentences leave it out */
	if (strstr(f->text, place) && asprintf(&quote, "%s: %s%s", place, text, is_cut ? "..." : "") < 0)
		quote = NULL;
	free(place);
	return quote;
}

char *report_finding__quote(const struct report_finding *f, const char *object)
{
	static const char *const objects[] = { "code", "counterpart", "activity_code" };
	char *quote = quote_of(f, object), *earlier;

	for (size_t i = 0; quote && strcmp(objects[i], object) != 0; i++) {
		earlier = quote_of(f, objects[i]);
		if (earlier && !strcmp(earlier, quote)) {
			free(quote);
			quote = NULL;
		}
		free(earlier);
	}
	return quote;
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
