// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Prints findings and tables for people, with colours on a terminal. */
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

#define LINES_MAX 3 /* of evidence; the last one has all further clauses */
#define INDENT	  4

size_t print__words(FILE *file, const char *text, size_t at, const char *prefix, size_t indent, size_t line)
{
	size_t first = at, n;

	for (; *text; text += n) {
		n = strspn(text, " ");
		n += strcspn(text + n, " ");
		if (at + n > line && at > first) {
			text += strspn(text, " ");
			n = strcspn(text, " ");
			at = strlen(prefix) + indent;
			fprintf(file, "\n%s%*s", prefix, (int)indent, "");
		}
		fprintf(file, "%.*s", (int)n, text);
		at += n;
	}
	return at;
}

/* Prints words in lines that fit; those after the first are indented further. */
static void print_wrapped(FILE *file, const char *text, size_t indent, size_t line)
{
	fprintf(file, "%*s", (int)indent, "");
	print__words(file, text, indent, "", indent + PRINT_HANG, line);
}

/* Prints clauses `from` to `to` as one line. */
static void print_clauses(FILE *file, const struct report_finding *f, u32 from, u32 to, size_t line)
{
	char *text = NULL, *clean;
	size_t size;
	FILE *all = open_memstream(&text, &size);

	for (u32 i = from; all && i <= to; i++) {
		char *clause = report_finding__clause(f, i);

		fprintf(all, "%s%s", i > from ? "; " : "", clause ? clause : "?");
		free(clause);
	}
	clean = all && !fclose(all) ? text__clean(text, size) : NULL;
	print_wrapped(file, clean ? clean : "(no memory to print this)", from ? INDENT : 0, line);
	free(clean);
	free(text);
}

static void print_note(FILE *file, const struct output_options *options, const char *note)
{
	char *clean = text__clean(note, strlen(note));

	print_wrapped(file, clean ? clean : "(no memory to print this)", 0, options->width ? options->width : SIZE_MAX);
	putc('\n', file);
	free(clean);
}

/* Prints the source text of a line that the finding names, if it is known. */
static void print_quote(FILE *file, const struct report_finding *f, const char *object, size_t line)
{
	char *quote = report_finding__quote(f, object);
	char *clean = quote ? text__clean(quote, strlen(quote)) : NULL;

	if (clean) {
		putc('\n', file);
		print_wrapped(file, clean, INDENT, line);
	}
	free(clean);
	free(quote);
}

/* A card: a headline, the line of source text, what shows it, and the command that shows more */
static void print_card(FILE *file, const struct output_options *options, const struct report_finding *f)
{
	size_t line = options->width ? options->width : SIZE_MAX;
	const char *next = f->text[f->sentence] ? f->text + f->sentence + 1 : NULL;

	fputs(print__color(options, COLOR_BOLD), file);
	print_clauses(file, f, 0, 0, line);
	fputs(print__color(options, COLOR_PLAIN), file);
	print_quote(file, f, "code", line);
	for (u32 i = 1; i <= f->n_clauses && i <= LINES_MAX; i++) {
		putc('\n', file);
		print_clauses(file, f, i, i < LINES_MAX ? i : f->n_clauses, line);
	}
	print_quote(file, f, "counterpart", line);
	print_quote(file, f, "activity_code", line);
	if (next) {
		fprintf(file, "\n%*s%s", INDENT, "", print__color(options, COLOR_DIM));
		print__clean(file, next);
		fputs(print__color(options, COLOR_PLAIN), file);
	}
	putc('\n', file);
}

static void print_finding(FILE *file, const struct output_options *options, const struct report_finding *f)
{
	if (f->n_fields) {
		print_card(file, options, f);
		return;
	}
	print_note(file, options, f->text);
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
			print_table__write(file, options, t);
	}
	for (i = 0; i < out->n_notes; i++)
		print_note(file, options, out->notes[i]);
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
