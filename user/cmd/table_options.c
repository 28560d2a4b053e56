// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/table_options.h"

#include <errno.h>

#include "cmd/cmd.h"
#include "cmd/pager.h"
#include "cmd/rule_files.h"

bool table_options__take(struct output_options *o, const char *command, int option, const char *value)
{
	u64 rows;

	switch (option) {
	case TABLE_OPTION_FORMAT:
		return cmd__parse_format(command, value, o);
	case TABLE_OPTION_SORT:
		o->sort = value;
		return true;
	case TABLE_OPTION_NO_PAGER:
		pager__disable();
		return true;
	case TABLE_OPTION_RULES:
		return rule_files__add(value);
	case 'n':
		if (!cmd__parse_number(command, "-n", value, 0, 0xffffffff, &rows))
			return false;
		o->rows = (s64)rows;
		return true;
	default:
		fprintf(stderr, "Try 'sonde %s --help'.\n", command);
		return false;
	}
}

static int no_such_column(const struct report_output *out, const char *what, const char *column)
{
	cmd__error("no table of %s has a column '%s'; there are:", what, column);
	for (const struct table *t = out->tables; t; t = t->next) {
		fprintf(stderr, "  %s:", t->name);
		for (u32 i = 0; i < t->n_columns; i++)
			fprintf(stderr, " %s", t->columns[i].key);
		putc('\n', stderr);
	}
	return EXIT_USAGE;
}

int table_options__print(const struct output_options *o, struct report_output *out, const char *what)
{
	int err = o->sort ? report_output__sort(out, o->sort) : 0;

	if (err == -ENOENT)
		return no_such_column(out, what, o->sort);
	if (err) {
		cmd__error("cannot sort by '%s': %s", o->sort, cmd__reason(err));
		return EXIT_FAILED;
	}
	return cmd__print(out, o);
}
