// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `sonde record --report` records in one process and reports in another, because they give up different rights; so does
 * one trace per cycle.
 */
#include <sys/mman.h>

#include "cmd/cmd.h"
#include "cmd/record.h"
#include "cmd/subcommand.h"
#include "output/file.h"

int record_report__run(struct record_args *a, int (*record)(void *a))
{
	static char name[64];
	char *report[] = { (char *)"sonde", (char *)"report", (char *)"--", NULL, NULL };
	int status, shown = EXIT_DONE, reported = EXIT_DONE;

	/* cppcheck-suppress invalidFunctionArg */
	a->written = mmap(NULL, sizeof(*a->written), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (a->written == MAP_FAILED) {
		cmd__error("out of memory");
		return a->has_command ? EXIT_OWN_FAILURE : EXIT_FAILED;
	}
	/* The default name contains the time, so it is made once for both processes. */
	if (!a->output) {
		output__default_path(name, sizeof(name));
		a->output = name;
	}
	report[3] = (char *)a->output;
	status = subcommand__call(record, a);
	/* Any status may mean a complete trace: with a command it is the command's. */
	if (*a->written && a->pattern)
		shown = record_cycles__write(a);
	if (*a->written && a->report)
		reported = subcommand__run(report);
	munmap(a->written, sizeof(*a->written));
	return status ?: shown ?: reported;
}
