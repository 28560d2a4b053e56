// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The sentences of a report: findings, with the figures that they state, and notes. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "output/table.h"

/* Room for one more of n elements of that size; NULL: no memory, which is noted */
static void *grow(struct report_output *out, void *list, u32 n, size_t size)
{
	void *more = realloc(list, (n + 1) * size);

	out->failed = out->failed || !more;
	return more;
}

static void add_finding(struct report_output *out, char *text)
{
	struct report_finding *more = text ? grow(out, out->findings, out->n_findings, sizeof(*more)) : NULL;

	if (!more) {
		out->failed = true;
		free(text);
		return;
	}
	out->findings = more;
	more[out->n_findings++] = (struct report_finding){ .text = text };
}

void report_output__finding(struct report_output *out, const char *format, ...)
{
	va_list args;
	char *text;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	add_finding(out, len < 0 ? NULL : text);
}

void report_output__figures(struct report_output *out, const struct figure *figures, size_t n)
{
	struct report_finding *f = out->n_findings ? &out->findings[out->n_findings - 1] : NULL;
	struct figure *more;

	for (size_t i = 0; f && i < n; i++) {
		bool is_text = figures[i].value.type == VALUE_TEXT;
		char *copy = is_text ? strdup(figures[i].value.text) : NULL;

		more = is_text && !copy ? NULL : grow(out, f->figures, f->n_figures, sizeof(*more));
		if (!more) {
			out->failed = true;
			free(copy);
			return;
		}
		f->figures = more;
		more[f->n_figures] = figures[i];
		if (is_text)
			more[f->n_figures].value.text = copy;
		f->n_figures++;
	}
}

void report_output__take(struct report_output *out, const struct report_finding *finding)
{
	u32 n = out->n_findings;

	add_finding(out, strdup(finding->text));
	if (out->n_findings > n)
		report_output__figures(out, finding->figures, finding->n_figures);
}

void report_output__note(struct report_output *out, const char *format, ...)
{
	va_list args;
	char **more, *text;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	more = len < 0 ? NULL : grow(out, out->notes, out->n_notes, sizeof(*more));
	if (!more) {
		out->failed = true;
		if (len >= 0)
			free(text);
		return;
	}
	out->notes = more;
	more[out->n_notes++] = text;
}

void report_output__free_lines(struct report_output *out)
{
	for (u32 i = 0; i < out->n_findings; i++) {
		struct report_finding *f = &out->findings[i];

		for (u32 k = 0; k < f->n_figures; k++)
			if (f->figures[k].value.type == VALUE_TEXT)
				free((char *)f->figures[k].value.text);
		free(f->figures);
		free(f->text);
	}
	for (u32 i = 0; i < out->n_notes; i++)
		free(out->notes[i]);
	free(out->findings);
	free(out->notes);
}
