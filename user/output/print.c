// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Prints tables for people, with aligned columns, and colours on a terminal. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/print.h"
#include "output/text.h"
#include "util/saturate.h"

const char *print__color(const struct output_options *options, const char *color)
{
	return options->color ? color : "";
}

void print__clean(FILE *file, const char *text)
{
	text__put_clean(file, text, strlen(text));
}

static bool is_figure(const struct column *c)
{
	return c->type != VALUE_TEXT;
}

/* Appends a space to a one-letter unit, so that decimal points line up. */
static void pad_unit(char *buf, size_t size, size_t width)
{
	char *space = strchr(buf, ' ');
	size_t len = strlen(buf), pad = space ? width - strlen(space + 1) : 0;

	for (; pad && len + 1 < size; pad--)
		buf[len++] = ' ';
	buf[len] = '\0';
}

static void format_u64(char *buf, size_t size, enum column_show show, u64 u)
{
	switch (show) {
	case SHOW_COUNT:
		text__count(buf, size, u);
		break;
	case SHOW_NS:
		text__ns(buf, size, u);
		pad_unit(buf, size, 2);
		break;
	case SHOW_BYTES:
		text__bytes(buf, size, u);
		pad_unit(buf, size, 3);
		break;
	case SHOW_HEX:
		snprintf(buf, size, "0x%llx", u);
		break;
	case SHOW_GIGA:
		snprintf(buf, size, "%.3f", (double)u / 1e9);
		break;
	case SHOW_SECONDS:
		text__seconds(buf, size, u, 0, 6);
		break;
	default:
		snprintf(buf, size, "%llu", u);
	}
}

static void format_double(char *buf, size_t size, enum column_show show, double d)
{
	char whole[TEXT_NUMBER];

	if (show == SHOW_NS || show == SHOW_BYTES || show == SHOW_GIGA) {
		format_u64(buf, size, show, saturate__round(d));
	} else if (show == SHOW_COUNT && d >= 0 && d < 1e18) {
		/* as nsys does: 1,234.5 */
		u64 tenths = (u64)(d * 10 + 0.5);

		snprintf(buf, size, "%s.%llu", text__count(whole, sizeof(whole), tenths / 10), tenths % 10);
	} else {
		snprintf(buf, size, "%.1f", d);
	}
}

char *print__cell(const struct column *c, const struct value *v)
{
	char buf[TEXT_NUMBER + 8];

	switch (v->type) {
	case VALUE_NONE:
		return strdup("-");
	case VALUE_U64:
		format_u64(buf, sizeof(buf), c->show, v->u);
		break;
	case VALUE_S64:
		if (c->show == SHOW_SECONDS)
			/* v, which is negative before the trace's start, is passed as the difference of two times */
			text__seconds(buf, sizeof(buf), v->s < 0 ? 0 : (u64)v->s, v->s < 0 ? 0 - (u64)v->s : 0, 6);
		else if (c->show == SHOW_BYTES)
			format_u64(buf + (v->s < 0), sizeof(buf) - 1, c->show, v->s < 0 ? 0 - (u64)v->s : (u64)v->s);
		else
			snprintf(buf, sizeof(buf), "%lld", v->s);
		if (c->show == SHOW_BYTES && v->s < 0)
			buf[0] = '-';
		break;
	case VALUE_DOUBLE:
		format_double(buf, sizeof(buf), c->show, v->d);
		break;
	case VALUE_TEXT:
		return text__clean(v->text, strlen(v->text));
	}
	return strdup(buf);
}

u32 print__rows(const struct table *t, s64 rows, bool people)
{
	u64 n = rows >= 0 ? (u64)rows : people ? t->limit : 0;

	return n && n < t->n_rows ? (u32)n : t->n_rows;
}

static bool is_last_shown(const struct table *t, u32 column)
{
	for (column++; column < t->n_columns; column++) {
		if (t->columns[column].show != SHOW_NEVER)
			return false;
	}
	return true;
}

/* Prints one line of cells without trailing blanks. */
static void print_line(FILE *file, const struct table *t, char *const *cells, const size_t *widths)
{
	bool first = true;
	size_t pad, len;
	u32 c;

	for (c = 0; c < t->n_columns; c++) {
		if (t->columns[c].show == SHOW_NEVER)
			continue;
		if (!first)
			fputs("  ", file);
		first = false;
		pad = widths[c] - text__width(cells[c]);
		len = strlen(cells[c]);
		for (; is_last_shown(t, c) && len && cells[c][len - 1] == ' '; len--)
			;
		if (is_figure(&t->columns[c]))
			fprintf(file, "%*s%.*s", (int)pad, "", (int)len, cells[c]);
		else
			fprintf(file, "%s%*s", cells[c], is_last_shown(t, c) ? 0 : (int)pad, "");
	}
}

/* No text is shortened to less than this, however narrow the terminal is. */
#define TEXT_MIN 16

/* May the column be made narrower than `width`? Not narrower than its heading. */
static bool is_elastic(const struct column *c, size_t width)
{
	return c->type == VALUE_TEXT && c->show != SHOW_STRIP && c->show != SHOW_OPTION && c->show != SHOW_NEVER &&
	       width > TEXT_MIN && width > text__width(c->heading);
}

/* The widest column that can be made narrower, or -1; *next: how wide the second widest is. */
static int widest(const struct table *t, const size_t *widths, size_t *next)
{
	int found = -1;

	*next = TEXT_MIN;
	for (u32 c = 0; c < t->n_columns; c++) {
		if (!is_elastic(&t->columns[c], widths[c]))
			continue;
		if (found < 0 || widths[c] > widths[found]) {
			*next = found < 0 ? *next : widths[found];
			found = (int)c;
		} else if (widths[c] > *next) {
			*next = widths[c];
		}
	}
	return found;
}

/* Makes the widest columns of texts narrower until a line fits into the terminal, or none can be. */
static void fit_widths(const struct table *t, size_t *widths, size_t terminal)
{
	size_t line = 0, next, excess;
	int c;

	for (u32 i = 0; i < t->n_columns; i++)
		if (t->columns[i].show != SHOW_NEVER)
			line += widths[i] + (line ? 2 : 0);
	while (line > terminal && (c = widest(t, widths, &next)) >= 0) {
		size_t least = text__width(t->columns[c].heading);

		/* makes it as wide as the second widest; if it is that already, narrower by one */
		next = next > least ? next : least;
		excess = widths[c] > next ? widths[c] - next : 1;
		excess = excess < line - terminal ? excess : line - terminal;
		widths[c] -= excess;
		line -= excess;
	}
}

static void print_cells(FILE *file, const struct output_options *options, const struct table *t, char **cells, u32 rows)
{
	size_t i, width, *widths = calloc(t->n_columns, sizeof(*widths));
	u32 c;

	if (!widths)
		return;
	/* Row 0 has the headings. */
	for (i = 0; i < (size_t)(rows + 1) * t->n_columns; i++) {
		width = text__width(cells[i]);
		c = (u32)(i % t->n_columns);
		widths[c] = width > widths[c] ? width : widths[c];
	}
	if (options->width)
		fit_widths(t, widths, options->width);
	for (i = 0; i < (size_t)(rows + 1) * t->n_columns; i++)
		text__shorten(cells[i], widths[i % t->n_columns]);
	fputs(print__color(options, COLOR_DIM), file);
	print_line(file, t, cells, widths);
	fprintf(file, "%s\n", print__color(options, COLOR_PLAIN));
	for (i = 1; i <= rows; i++) {
		print_line(file, t, cells + i * t->n_columns, widths);
		putc('\n', file);
	}
	free(widths);
}

static void print_table(FILE *file, const struct output_options *options, const struct table *t)
{
	u32 i, c, rows = print__rows(t, options->rows, true);
	size_t n = (size_t)(rows + 1) * t->n_columns, at = 0;
	char **cells = calloc(n ? n : 1, sizeof(*cells));
	bool whole = cells != NULL;

	fprintf(file, "%s%s%s\n", print__color(options, COLOR_BOLD), t->title, print__color(options, COLOR_PLAIN));
	if (!t->n_rows) {
		fputs("(none)\n\n", file);
		free(cells);
		return;
	}
	for (c = 0; whole && c < t->n_columns; c++)
		whole = (cells[at++] = strdup(t->columns[c].heading)) != NULL;
	for (i = 0; i < rows; i++) {
		for (c = 0; whole && c < t->n_columns; c++)
			whole = (cells[at++] = print__cell(&t->columns[c], &table__row(t, i)[c])) != NULL;
	}
	if (whole)
		print_cells(file, options, t, cells, rows);
	else
		fputs("(no memory to print this)\n", file);
	if (rows < t->n_rows)
		fprintf(file, "%s... %u of %u rows; -n 0 shows all%s\n", print__color(options, COLOR_DIM), rows,
			t->n_rows, print__color(options, COLOR_PLAIN));
	putc('\n', file);
	for (; cells && at; at--)
		free(cells[at - 1]);
	free(cells);
}

static void print_part(FILE *file, const char *text, size_t len)
{
	char *part = strndup(text, len);

	print__clean(file, part ? part : "?");
	free(part);
}

/* The bytes of its first clause, which states the cause and the code */
static size_t first_clause(const char *text)
{
	size_t n = strcspn(text, ":;.");

	/* in "srv.py:12" these characters do not end the clause, because no space follows */
	while (text[n] && text[n + 1] && text[n + 1] != ' ')
		n += 1 + strcspn(text + n + 1, ":;.");
	return n;
}

/* On a terminal the cause of a ranked finding is bold, and the command that shows more is dim. */
static void print_finding(FILE *file, const struct output_options *options, const struct report_finding *f)
{
	size_t bold = options->color && f->n_fields ? first_clause(f->text) : 0;
	const char *next = bold ? strstr(f->text + bold, " Next: `") : NULL;

	if (bold) {
		fputs(COLOR_BOLD, file);
		print_part(file, f->text, bold);
		fputs(COLOR_PLAIN, file);
	}
	print_part(file, f->text + bold, next ? (size_t)(next - f->text) - bold : strlen(f->text + bold));
	if (next) {
		fputs(COLOR_DIM, file);
		print__clean(file, next);
		fputs(COLOR_PLAIN, file);
	}
	putc('\n', file);
}

static void print_people(const struct report_output *out, const struct output_options *options, FILE *file)
{
	const struct table *t;
	u32 i;

	for (i = 0; i < out->n_findings; i++)
		print_finding(file, options, &out->findings[i]);
	if (out->n_findings && out->tables)
		putc('\n', file);
	for (t = out->tables; t; t = t->next) {
		/* A finding already states that the table is empty. */
		if (!t->machine_only && (t->n_rows || !out->n_findings))
			print_table(file, options, t);
	}
	for (i = 0; i < out->n_notes; i++) {
		print__clean(file, out->notes[i]);
		putc('\n', file);
	}
	if (out->origin.print)
		out->origin.print(file, options, "", out->origin.arg);
}

int report_output__print(const struct report_output *out, const struct output_options *options, FILE *file)
{
	errno = 0;
	if (options->format == OUTPUT_JSON)
		print__json(out, options, file);
	else if (options->format == OUTPUT_CSV)
		print__csv(out, options, file);
	else
		print_people(out, options, file);
	if (fflush(file) || ferror(file))
		return errno ? -errno : -EIO;
	return 0;
}
