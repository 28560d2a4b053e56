// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "output/html.h"

#include <stdlib.h>
#include <string.h>

#include "output/print.h"
#include "output/text.h"

/* Characters of a cell at most: a text that a target chose may be as long as it likes */
#define CELL_MAX 600

static void put_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("<>&'\"", *text))
			fprintf(out, "&#%d;", *text);
		else
			putc(*text, out);
	}
}

void html__put_text(FILE *out, const char *text)
{
	char *clean = text__clean(text, strlen(text));

	put_escaped(out, clean ? clean : "?");
	free(clean);
}

void html__put_json(FILE *out, const char *text)
{
	char *clean = text__clean(text, strlen(text));

	putc('"', out);
	for (const char *p = clean ? clean : "?"; *p; p++) {
		if (strchr("<>&'\"\\", *p) || (unsigned char)*p < ' ')
			fprintf(out, "\\u%04x", (unsigned int)(unsigned char)*p);
		else
			putc(*p, out);
	}
	putc('"', out);
	free(clean);
}

static void put_heading(FILE *out, const struct column *c)
{
	fprintf(out, "<th scope=\"col\"%s>", c->type == VALUE_TEXT ? "" : " class=\"n\"");
	html__put_text(out, c->heading);
	fputs("</th>", out);
}

static void put_cell(FILE *out, const struct column *c, const struct value *v)
{
	char *text = print__cell(c, v), number[TEXT_NUMBER];

	if (c->type == VALUE_TEXT)
		fprintf(out, "<td%s>", c->show == SHOW_STRIP ? " class=\"strip\"" : "");
	else if (v->type == VALUE_NONE)
		fputs("<td class=\"n\">", out);
	else if (v->type == VALUE_DOUBLE)
		fprintf(out, "<td class=\"n\" data-v=\"%s\">", text__double(number, sizeof(number), v->d));
	else if (v->type == VALUE_S64)
		fprintf(out, "<td class=\"n\" data-v=\"%lld\">", v->s);
	else
		fprintf(out, "<td class=\"n\" data-v=\"%llu\">", v->u);
	if (text && c->show != SHOW_STRIP)
		text__shorten(text, CELL_MAX);
	put_escaped(out, text ? text : "?");
	fputs("</td>", out);
	free(text);
}

void html__put_table(FILE *out, const struct table *t, u32 rows, const char *command)
{
	u32 n = rows < t->n_rows ? rows : t->n_rows;

	if (!t->n_rows || t->machine_only)
		return;
	fputs("<div class=\"scroll\"><table><caption>", out);
	html__put_text(out, t->title);
	fputs("</caption><thead><tr>", out);
	for (u32 c = 0; c < t->n_columns; c++)
		if (t->columns[c].show != SHOW_NEVER)
			put_heading(out, &t->columns[c]);
	fputs("</tr></thead><tbody>\n", out);
	for (u32 i = 0; i < n; i++) {
		fputs("<tr>", out);
		for (u32 c = 0; c < t->n_columns; c++)
			if (t->columns[c].show != SHOW_NEVER)
				put_cell(out, &t->columns[c], &table__row(t, i)[c]);
		fputs("</tr>\n", out);
	}
	fputs("</tbody></table></div>\n", out);
	if (n == t->n_rows)
		return;
	fprintf(out, "<p class=\"cut\">%u of %u rows; <code>", n, t->n_rows);
	html__put_text(out, command);
	fputs("</code> shows all.</p>\n", out);
}

static ssize_t write_attribute(void *cookie, const char *buf, size_t size)
{
	FILE *out = cookie;

	for (size_t i = 0; i < size; i++) {
		if (buf[i] == '&' || buf[i] == '\'')
			fprintf(out, "&#%d;", buf[i]);
		else
			putc(buf[i], out);
	}
	return ferror(out) ? 0 : (ssize_t)size;
}

FILE *html__attribute(FILE *out)
{
	return fopencookie(out, "w", (cookie_io_functions_t){ .write = write_attribute });
}
