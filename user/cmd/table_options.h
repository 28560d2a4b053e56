/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The options of commands that print tables: --format, --sort, -n, --no-pager; and --rules. */
#pragma once

#include "output/table.h"

/* Entries for getopt_long's table, and the values that it returns for them; -n is 'n'. */
enum { TABLE_OPTION_FORMAT = 0x20000, TABLE_OPTION_SORT, TABLE_OPTION_NO_PAGER, TABLE_OPTION_RULES };
#define FORMAT_OPTION                                                  \
	{                                                              \
		"format", required_argument, NULL, TABLE_OPTION_FORMAT \
	}
#define PAGER_OPTION                                                 \
	{                                                            \
		"no-pager", no_argument, NULL, TABLE_OPTION_NO_PAGER \
	}
/* For commands with findings; it may be given several times. */
#define RULES_OPTION                                                 \
	{                                                            \
		"rules", required_argument, NULL, TABLE_OPTION_RULES \
	}
#define TABLE_OPTIONS                                                                        \
	FORMAT_OPTION, PAGER_OPTION, { "sort", required_argument, NULL, TABLE_OPTION_SORT }, \
	{                                                                                    \
		"rows", required_argument, NULL, 'n'                                         \
	}

/* Takes an option; returns false after printing an error, also if the option is not one of these. */
bool table_options__take(struct output_options *o, const char *command, int option, const char *value);
/* Sorts the tables as requested and prints them. what: "report gil", for an error. Returns the exit status. */
int table_options__print(const struct output_options *o, struct report_output *out, const char *what);
