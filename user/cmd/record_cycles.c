// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `sonde record --schedule ..,repeat=N -o DIR/` (or a name with %d) writes one trace per cycle: the recording writes a
 * trace of all, from which `sonde export --to cycle` then makes the others, without privileges.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/cmd.h"
#include "cmd/record.h"
#include "cmd/subcommand.h"

#define REPEAT_MAX 1000

/* The name of a trace of a cycle, or of the trace of all */
static char *name_of(struct record_args *a, const char *cycle)
{
	const char *at = strstr(a->pattern, "%d");
	char *name;
	int n = at ? asprintf(&name, "%.*s%s%s", (int)(at - a->pattern), a->pattern, cycle, at + 2) :
		     asprintf(&name, "%scycle-%s.sonde", a->pattern, cycle);

	return n < 0 || record_options__copy(a, name) ? NULL : name;
}

static char *name_of_number(struct record_args *a, u32 cycle)
{
	char number[16];

	snprintf(number, sizeof(number), "%u", cycle);
	return name_of(a, number);
}

int record_cycles__choose(struct record_args *a)
{
	size_t n = a->output ? strlen(a->output) : 0;
	struct stat st;

	if (!a->session.schedule || !n || (a->output[n - 1] != '/' && !strstr(a->output, "%d")))
		return 0;
	if (!a->schedule.repeat || a->schedule.repeat > REPEAT_MAX) {
		fprintf(stderr,
			"sonde record: one trace per cycle (-o DIR/, or a name with %%d) needs --schedule with repeat=N, from 1 to %d\n",
			REPEAT_MAX);
		return -EINVAL;
	}
	a->pattern = a->output;
	for (u32 i = 1; i <= a->schedule.repeat; i++) {
		const char *name = name_of_number(a, i);

		if (!name)
			return -ENOMEM;
		if (a->force || lstat(name, &st))
			continue;
		fprintf(stderr, "sonde record: %s exists already; -f overwrites it, -o names another\n", name);
		return -EINVAL;
	}
	a->output = name_of(a, "all");
	return a->output ? 0 : -ENOMEM;
}

int record_cycles__write(struct record_args *a)
{
	int status = EXIT_DONE;

	for (u32 i = 1; i <= a->schedule.repeat && status == EXIT_DONE; i++) {
		char number[16];
		const char *name = name_of_number(a, i);
		char *export[] = { (char *)"sonde",
				   (char *)"export",
				   (char *)"--to",
				   (char *)"cycle",
				   (char *)"--event",
				   number,
				   (char *)(a->force ? "-fo" : "-o"),
				   (char *)name,
				   (char *)"--",
				   (char *)a->output,
				   NULL };

		if (!name)
			return EXIT_FAILED;
		snprintf(number, sizeof(number), "%u", i);
		status = subcommand__run(export);
		if (status == EXIT_DONE && !a->quiet)
			fprintf(stderr, "sonde: cycle %u: %s\n", i, name);
	}
	return status;
}
