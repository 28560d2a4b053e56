// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `sonde record --schedule ..,repeat=N -o DIR/` (or a name with %d) writes one trace per cycle: the recording writes a
 * trace of all, from which `sonde export --to cycle` then makes the others, without privileges.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "cmd/cmd.h"
#include "cmd/record.h"
#include "cmd/subcommand.h"
#include "model/cycles.h"
#include "trace/reader.h"

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
		fprintf(stderr, "sonde record: %s exists already; -f replaces it, -o names another\n", name);
		return -EINVAL;
	}
	a->output = name_of(a, "all");
	return a->output ? 0 : -ENOMEM;
}

/* Which cycles the trace of all has, in memory that is shared with the process that reads it */
struct existing {
	const char *path;
	u32 repeat;
	bool cycles[REPEAT_MAX + 1]; /* by number */
};

/* Runs in a child, because a process that reads traces gives up the rights to write others. */
static int find_existing(void *arg)
{
	struct existing *e = arg;
	char *path = (char *)e->path;
	struct cycles cycles;
	struct inputs in;
	struct trace *t;
	int err;

	if (!inputs__open(&in, &path, 1))
		return EXIT_FAILED;
	t = inputs__read(&in, NULL);
	if (!t)
		return EXIT_FAILED;
	err = cycles__load(&cycles, t);
	for (u32 i = 1; !err && i <= e->repeat && i <= cycles.n; i++)
		e->cycles[i] = cycles.list[i - 1].to;
	cycles__free(&cycles);
	trace__close(t);
	if (err)
		cmd__error("%s: cannot read its cycles: %s", path, cmd__reason(err));
	return err ? EXIT_FAILED : EXIT_DONE;
}

static int write_one(struct record_args *a, u32 cycle)
{
	char number[16];
	const char *name = name_of_number(a, cycle);
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
	int status;

	if (!name)
		return EXIT_FAILED;
	snprintf(number, sizeof(number), "%u", cycle);
	status = subcommand__run(export, NULL);
	if (status == EXIT_DONE && !a->quiet)
		fprintf(stderr, "sonde: cycle %u: %s\n", cycle, name);
	return status;
}

int record_cycles__write(struct record_args *a)
{
	struct existing *e;
	u32 n = 0;
	int status;

	/* cppcheck-suppress invalidFunctionArg */
	e = mmap(NULL, sizeof(*e), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (e == MAP_FAILED) {
		cmd__error("out of memory");
		return EXIT_FAILED;
	}
	*e = (struct existing){ .path = a->output, .repeat = a->schedule.repeat };
	status = subcommand__call(find_existing, e, NULL);
	for (u32 i = 1; i <= e->repeat; i++) {
		int written = e->cycles[i] ? write_one(a, i) : EXIT_DONE;

		n += e->cycles[i];
		status = status ?: written;
	}
	/* Ctrl-C, -d or the end of the program may end a recording before its last cycle */
	if (status == EXIT_DONE && n < e->repeat)
		fprintf(stderr, "sonde: %u of the %u cycles %s recorded\n", n, e->repeat, n == 1 ? "was" : "were");
	munmap(e, sizeof(*e));
	return status;
}
