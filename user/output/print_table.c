// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Prints a table for people, with aligned columns that fit into the line: columns without values are left out; if that
 * is not enough, headings take several lines, what is equal in all rows moves above the table, texts are shortened, and
 * details are left out.
 */
#include <stdlib.h>
#include <string.h>

#include "output/print.h"
#include "output/text.h"

/* Texts are shortened to this before details are left out, and to no less than that, however narrow the terminal is. */
#define TEXT_SHORT 32
#define TEXT_MIN   16
/* Lines of a heading */
#define HEADING_MAX 4

/* A table as it is printed. Only the shown columns count. */
struct layout {
	const struct table *t;
	char **cells; /* rows times t->n_columns */
	u32 rows;
	size_t line; /* that it should fit into, characters */
	struct column_layout {
		bool is_shown, is_constant; /* constant: equal in all rows, and printed above them */
		size_t width; /* characters */
	} * columns; /* by column */
};

static bool is_figure(const struct column *c)
{
	return c->type != VALUE_TEXT;
}

static char *cell_of(const struct layout *l, u32 row, u32 column)
{
	return l->cells[(size_t)row * l->t->n_columns + column];
}

/* Characters of the widest word */
static size_t widest_word(const char *text)
{
	size_t width = 0;

	for (size_t n; *text; text += n + (text[n] == ' ')) {
		n = strcspn(text, " ");
		width = n > width ? n : width;
	}
	return width;
}

/* Copies the next line of a heading, of words that fit into `width`, to out; returns what follows it. */
static const char *next_line(const char *heading, size_t width, char *out, size_t size)
{
	size_t len = strcspn(heading, " "), more;

	while (heading[len]) {
		more = 1 + strcspn(heading + len + 1, " ");
		if (len + more > width)
			break;
		len += more;
	}
	snprintf(out, size, "%.*s", (int)len, heading);
	return heading + len + (heading[len] == ' ');
}

/* Returns into how many lines words of at most `width` break the heading. */
static u32 lines_of(const char *heading, size_t width)
{
	char line[64];
	u32 n = 0;

	for (; *heading; n++)
		heading = next_line(heading, width, line, sizeof(line));
	return n;
}

/* Characters of a line of the table */
static size_t width_of(const struct layout *l)
{
	size_t line = 0;

	for (u32 c = 0; c < l->t->n_columns; c++)
		if (l->columns[c].is_shown)
			line += l->columns[c].width + (line ? 2 : 0);
	return line;
}

static bool has_value(const char *cell)
{
	return *cell && strcmp(cell, "-") != 0;
}

static bool has_values(const struct layout *l, u32 column)
{
	for (u32 i = 0; i < l->rows; i++)
		if (has_value(cell_of(l, i, column)))
			return true;
	return false;
}

static bool is_constant(const struct layout *l, u32 column)
{
	for (u32 i = 1; i < l->rows; i++)
		if (strcmp(cell_of(l, 0, column), cell_of(l, i, column)) != 0)
			return false;
	return l->rows > 1;
}

static size_t widest_cell(const struct layout *l, u32 column)
{
	size_t width = 0, of;

	for (u32 i = 0; i < l->rows; i++) {
		of = text__width(cell_of(l, i, column));
		width = of > width ? of : width;
	}
	return width;
}

/* Makes the column no wider than its cells, with the heading in as many lines as that takes. */
static void break_heading(struct layout *l, u32 column)
{
	const char *heading = l->t->columns[column].heading;
	size_t width = widest_word(heading), cell = widest_cell(l, column);

	width = cell > width ? cell : width;
	while (lines_of(heading, width) > HEADING_MAX)
		width++;
	l->columns[column].width = width < l->columns[column].width ? width : l->columns[column].width;
}

/* Leaves out what is equal in all rows, the widest first, until a line fits. */
static void move_constants(struct layout *l)
{
	while (width_of(l) > l->line) {
		struct column_layout *widest = NULL;

		for (u32 c = 0; c < l->t->n_columns; c++) {
			struct column_layout *p = &l->columns[c];

			if (p->is_shown && l->t->columns[c].show != SHOW_STRIP && is_constant(l, c) &&
			    (!widest || p->width > widest->width))
				widest = p;
		}
		if (!widest)
			return;
		widest->is_shown = false;
		widest->is_constant = true;
	}
}

/* May the column be made narrower than it is, but not than `least` or the words of its heading? */
static bool is_elastic(const struct layout *l, u32 column, size_t least)
{
	const struct column *c = &l->t->columns[column];
	size_t width = l->columns[column].width;

	return l->columns[column].is_shown && c->type == VALUE_TEXT && c->show != SHOW_STRIP &&
	       c->show != SHOW_OPTION && width > least && width > widest_word(c->heading);
}

/* Makes the widest columns of texts narrower until a line fits, or none can be. */
static void shorten_texts(struct layout *l, size_t least)
{
	for (size_t line = width_of(l); line > l->line; line--) {
		int widest = -1;

		for (u32 c = 0; c < l->t->n_columns; c++)
			if (is_elastic(l, c, least) && (widest < 0 || l->columns[c].width > l->columns[widest].width))
				widest = (int)c;
		if (widest < 0)
			return;
		l->columns[widest].width--;
	}
}

/* Leaves out details until a line fits, the last of the list first. */
static void leave_out_details(struct layout *l)
{
	const char *list = l->t->details ? l->t->details : "median_ns min_ns stddev_ns", *end = list + strlen(list),
		   *key;
	char name[64];
	int c;

	while (end > list && width_of(l) > l->line) {
		for (key = end; key > list && key[-1] != ' '; key--)
			;
		snprintf(name, sizeof(name), "%.*s", (int)(end - key), key);
		c = table__column(l->t, name);
		if (c >= 0)
			l->columns[c].is_shown = false;
		end = key > list ? key - 1 : key;
	}
}

static void fit(struct layout *l)
{
	for (u32 c = 0; c < l->t->n_columns; c++) {
		size_t cell = widest_cell(l, c), heading = text__width(l->t->columns[c].heading);

		l->columns[c].is_shown = l->t->columns[c].show != SHOW_NEVER && has_values(l, c);
		l->columns[c].width = cell > heading ? cell : heading;
	}
	for (u32 c = 0; width_of(l) > l->line && c < l->t->n_columns; c++)
		break_heading(l, c);
	move_constants(l);
	shorten_texts(l, TEXT_SHORT);
	leave_out_details(l);
	shorten_texts(l, TEXT_MIN);
	for (u32 i = 0; i < l->rows; i++)
		for (u32 c = 0; c < l->t->n_columns; c++)
			if (l->columns[c].is_shown)
				text__shorten(cell_of(l, i, c), l->columns[c].width);
}

static bool is_last(const struct layout *l, u32 column)
{
	for (column++; column < l->t->n_columns; column++)
		if (l->columns[column].is_shown)
			return false;
	return true;
}

/* Prints a cell, and blanks before it if it is not the first of its line, but none at the line's end. */
static void put_cell(FILE *file, const struct layout *l, u32 column, const char *cell, size_t *blanks)
{
	size_t width = text__width(cell), len = strlen(cell);
	size_t pad = l->columns[column].width > width ? l->columns[column].width - width : 0;
	bool right = is_figure(&l->t->columns[column]);

	for (; is_last(l, column) && len && cell[len - 1] == ' '; len--)
		;
	*blanks += right ? pad : 0;
	if (len)
		fprintf(file, "%*s%.*s", (int)*blanks, "", (int)len, cell);
	*blanks = (len ? 0 : *blanks + width) + (right ? 0 : pad) + 2;
}

static void put_headings(FILE *file, const struct layout *l)
{
	u32 lines = 1, n;
	char text[64];

	for (u32 c = 0; c < l->t->n_columns; c++) {
		n = l->columns[c].is_shown ? lines_of(l->t->columns[c].heading, l->columns[c].width) : 0;
		lines = n > lines ? n : lines;
	}
	for (u32 line = 0; line < lines; line++) {
		size_t blanks = 0;

		for (u32 c = 0; c < l->t->n_columns; c++) {
			const char *heading = l->t->columns[c].heading;
			u32 first;

			if (!l->columns[c].is_shown)
				continue;
			first = lines - lines_of(heading, l->columns[c].width);
			*text = '\0';
			for (u32 i = first; i <= line; i++)
				heading = next_line(heading, l->columns[c].width, text, sizeof(text));
			put_cell(file, l, c, text, &blanks);
		}
		if (line + 1 < lines)
			putc('\n', file);
	}
}

/* "Process: svc.py; PID: 4711 (in all rows)" */
static void put_constants(FILE *file, const struct layout *l)
{
	const char *before = "";

	for (u32 c = 0; c < l->t->n_columns; c++) {
		const char *cell = cell_of(l, 0, c);
		size_t len = strlen(cell);

		if (!l->columns[c].is_constant)
			continue;
		for (; len && cell[len - 1] == ' '; len--)
			;
		fprintf(file, "%s%s: %.*s", before, l->t->columns[c].heading, (int)len, cell);
		before = "; ";
	}
	if (*before)
		fputs(" (in all rows)\n", file);
}

static void put_table(FILE *file, const struct output_options *options, const struct layout *l)
{
	fputs(print__color(options, COLOR_DIM), file);
	put_constants(file, l);
	put_headings(file, l);
	fprintf(file, "%s\n", print__color(options, COLOR_PLAIN));
	for (u32 i = 0; i < l->rows; i++) {
		size_t blanks = 0;

		for (u32 c = 0; c < l->t->n_columns; c++)
			if (l->columns[c].is_shown)
				put_cell(file, l, c, cell_of(l, i, c), &blanks);
		putc('\n', file);
	}
}

/* Returns false without memory; call free_cells in any case. */
static bool make_cells(struct layout *l)
{
	size_t n = (size_t)l->rows * l->t->n_columns;

	l->cells = calloc(n ? n : 1, sizeof(*l->cells));
	l->columns = calloc(l->t->n_columns, sizeof(*l->columns));
	if (!l->cells || !l->columns)
		return false;
	for (size_t i = 0; i < n; i++) {
		u32 c = (u32)(i % l->t->n_columns);

		l->cells[i] = print__cell(&l->t->columns[c], &table__row(l->t, (u32)(i / l->t->n_columns))[c]);
		if (!l->cells[i])
			return false;
	}
	return true;
}

static void free_cells(struct layout *l)
{
	for (size_t i = 0; l->cells && i < (size_t)l->rows * l->t->n_columns; i++)
		free(l->cells[i]);
	free(l->cells);
	free(l->columns);
}

void print_table__write(FILE *file, const struct output_options *options, const struct table *t)
{
	struct layout l = {
		.t = t,
		.rows = print__rows(t, options->rows, true),
		.line = options->width ? options->width : SIZE_MAX,
	};

	fprintf(file, "%s%s%s\n", print__color(options, COLOR_BOLD), t->title, print__color(options, COLOR_PLAIN));
	if (!t->n_rows) {
		fputs("(none)\n\n", file);
		return;
	}
	if (make_cells(&l)) {
		fit(&l);
		put_table(file, options, &l);
	} else {
		fputs("(no memory to print this)\n", file);
	}
	if (l.rows < t->n_rows)
		fprintf(file, "%s... %u of %u rows; -n 0 shows all%s\n", print__color(options, COLOR_DIM), l.rows,
			t->n_rows, print__color(options, COLOR_PLAIN));
	putc('\n', file);
	free_cells(&l);
}
