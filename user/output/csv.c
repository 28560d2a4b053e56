// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Prints CSV as in RFC 4180, but with \n line ends, as tools on Linux expect. */
#include <stdlib.h>
#include <string.h>

#include "output/print.h"
#include "output/text.h"

static void csv_text(FILE *file, const char *text, enum column_show show)
{
	char *clean = text__clean(text, strlen(text));

	if (!clean)
		return;
	/* An empty field is an unknown value, so an empty text is quoted. */
	if (*clean && show == SHOW_OPTION)
		text__put_own_csv(file, clean);
	else if (*clean)
		text__put_csv(file, clean);
	else
		fputs("\"\"", file);
	free(clean);
}

static void csv_cell(FILE *file, const struct value *v, enum column_show show)
{
	char buf[TEXT_NUMBER];

	switch (v->type) {
	case VALUE_NONE:
		break;
	case VALUE_U64:
		fprintf(file, "%llu", v->u);
		break;
	case VALUE_S64:
		fprintf(file, "%lld", v->s);
		break;
	case VALUE_DOUBLE:
		fputs(text__double(buf, sizeof(buf), v->d), file);
		break;
	case VALUE_TEXT:
		csv_text(file, v->text, show);
		break;
	}
}

void print__csv(const struct report_output *out, const struct output_options *options, FILE *file)
{
	const struct output_options plain = { .width = options->width };
	const struct table *t;
	u32 i, c;

	for (i = 0; i < out->n_findings; i++) {
		fputs("# finding: ", file);
		print__clean(file, out->findings[i].text);
		putc('\n', file);
	}
	for (t = out->tables; t; t = t->next) {
		fprintf(file, "# %s\n", t->name);
		for (c = 0; c < t->n_columns; c++)
			fprintf(file, "%s%s", c ? "," : "", t->columns[c].key);
		putc('\n', file);
		for (i = 0; i < print__rows(t, options->rows, false); i++) {
			for (c = 0; c < t->n_columns; c++) {
				if (c)
					putc(',', file);
				csv_cell(file, &table__row(t, i)[c], t->columns[c].show);
			}
			putc('\n', file);
		}
	}
	for (i = 0; i < out->n_notes; i++) {
		fputs("# note: ", file);
		print__clean(file, out->notes[i]);
		putc('\n', file);
	}
	if (out->origin.print)
		out->origin.print(file, &plain, "# ", out->origin.arg);
}
