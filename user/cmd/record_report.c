// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `sonde record --report` records in one process and reports in another, because they give up different rights. */
#include "cmd/cmd.h"
#include "cmd/record.h"
#include "cmd/subcommand.h"
#include "output/file.h"

int record_report__run(struct record_args *a, int (*record)(void *a))
{
	static char name[64];
	char *report[] = { (char *)"sonde", (char *)"report", (char *)"--", NULL, NULL };
	int status, reported = EXIT_DONE, file = -1;

	/* The default name contains the time, so it is made once for both processes. */
	if (!a->output) {
		output__default_path(name, sizeof(name));
		a->output = name;
	}
	report[3] = (char *)a->output;
	status = subcommand__call(record, a, &file);
	/* Any status may mean a complete trace: with a command it is the command's. */
	inputs__use_file(a->output, file);
	if (file >= 0)
		reported = subcommand__run(report, NULL);
	return status ?: reported;
}
