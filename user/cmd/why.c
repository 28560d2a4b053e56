// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `sonde why`: records some processes for a few seconds, prints why one waits and the summary; the trace is removed. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/pids.h"
#include "cmd/rule_files.h"
#include "cmd/selection.h"
#include "cmd/status_line.h"
#include "cmd/subcommand.h"
#include "cmd/table_options.h"
#include "findings/chain.h"
#include "findings/findings.h"
#include "output/table.h"
#include "process/procs.h"

#define SECONDS "5"

static const char help[] =
	"Usage: sonde why [-d SECONDS] [--format table|csv|json] [--rules FILE] [--no-pager] PID..\n"
	"\n"
	"Records these processes and their descendants for five seconds, with the default set of `sonde\n"
	"record`, and prints what they did with their time: the summary of `sonde report`, and before it, for one\n"
	"process, the report `why`: what it waited for, to the end of the chain of waits. If it waited for a process\n"
	"of this machine that was not recorded, both are recorded for another five seconds. The trace is a file\n"
	"that no other user can read, and is removed. Needs root.\n"
	"\n"
	"  -d, --duration SEC    record for this many seconds, fractions allowed\n"
	"      --format FORMAT   table, csv or json\n"
	"      --rules FILE      rules on functions of libraries, before those of sonde: docs/adding-a-rule.md\n"
	"      --no-pager        no pager: on a terminal long output goes through $SONDE_PAGER, $PAGER or less\n"
	"  -h, --help            this text\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage, 3 done but something could not be attached.\n"
	"\n"
	"Examples:\n"
	"  sudo sonde why 4711                    what process 4711 waits for, and what it computes\n"
	"  sudo sonde why $(pgrep -f gunicorn)    the same of several processes\n"
	"  sudo sonde why -d 20 4711              over twenty seconds\n";

struct why_args {
	const char *seconds, *format;
	struct pid_list pids;
	bool is_help; /* --help was printed */
	bool is_chain; /* one process was given, and its chain of waits is printed */
};

static bool parse(struct why_args *a, int argc, char **argv)
{
	static const struct option options[] = {
		{ "duration", required_argument, NULL, 'd' },
		FORMAT_OPTION,
		PAGER_OPTION,
		RULES_OPTION,
		{ "help", no_argument, NULL, 'h' },
		{},
	};
	struct output_options format = {};
	int c;

	while ((c = getopt_long(argc, argv, "d:h", options, NULL)) != -1) {
		if (c == 'd')
			a->seconds = optarg;
		else if (c == 'h')
			a->is_help = true;
		else if (!table_options__take(&format, "why", c, optarg))
			return false;
		else if (c == TABLE_OPTION_FORMAT)
			a->format = optarg;
	}
	if (a->is_help) {
		fputs(help, stdout);
		return true;
	}
	if (optind == argc) {
		cmd__usage("why", "which process? `sonde why PID`");
		return false;
	}
	for (; optind < argc; optind++)
		if (!pid_list__add(&a->pids, "why", "PID", argv[optind]))
			return false;
	return true;
}

static int record(const struct why_args *a, char *path, int *file)
{
	static char list[PIDS_MAX * 12];
	char *argv[] = { (char *)"sonde",
			 (char *)"record",
			 (char *)"--quiet",
			 (char *)"-d",
			 (char *)a->seconds,
			 (char *)"-p",
			 list,
			 (char *)"-o",
			 path,
			 NULL };
	size_t used = 0;

	for (u32 i = 0; i < a->pids.n; i++)
		used += snprintf(list + used, sizeof(list) - used, "%s%u", i ? "," : "", a->pids.list[i]);
	status_line__set("recording %s s of %u process%s; Ctrl-C stops", a->seconds, a->pids.n,
			 a->pids.n == 1 ? "" : "es");
	return subcommand__run(argv, file);
}

/*
 * Prints the summary, and before it the chain of causes if there is one process and the format is a table. JSON and CSV
 * have only the summary, so that the output is a single object.
 */
static int report(const struct why_args *a, char *path)
{
	char pid[16];
	char *chain[] = { (char *)"sonde", (char *)"report", path, (char *)"why", pid, (char *)"--no-pager", NULL };
	char *argv[] = { (char *)"sonde",
			 (char *)"report",
			 path,
			 (char *)"--format",
			 (char *)(a->format ? a->format : "table"),
			 NULL };
	int status = EXIT_DONE;

	snprintf(pid, sizeof(pid), "%u", a->pids.list[0]);
	if (a->is_chain) {
		status = subcommand__run(chain, NULL);
		putchar('\n');
		fflush(stdout);
	}
	return status ? status : subcommand__run(argv, NULL);
}

struct search {
	const struct why_args *args;
	char *path;
	u32 found; /* a process; 0: none */
};

static int find_in(struct trace *t, struct search *s)
{
	const struct pid_list none = { .n = 0 };
	const struct selection_request request = {
		.command = "why", .label = "the trace", .path = s->path, .pids = &none
	};
	struct findings *findings = NULL;
	struct selection selection;
	struct chain chain = { .n = 0 };
	char pid[16];
	int err = selection__load(&selection, t, &request);

	snprintf(pid, sizeof(pid), "%u", s->args->pids.list[0]);
	if (!err)
		err = findings__read(&findings, &selection.query, 0) ?: chain__read(&chain, findings, pid);
	if (!err && chain.n && chain.levels[chain.n - 1].end == CHAIN_UNRECORDED)
		s->found = names__number(selection.query.names, chain.levels[chain.n - 1].caused_by.pid);
	chain__free(&chain);
	findings__free(findings);
	selection__free(&selection);
	return EXIT_DONE;
}

/* Runs in a child, which gives up its rights before it reads the trace. */
static int find_unrecorded(void *arg)
{
	struct search *s = arg;
	struct inputs in;
	struct trace *t = inputs__open(&in, &s->path, 1) ? inputs__read(&in, NULL) : NULL;

	if (!t)
		return EXIT_FAILED;
	find_in(t, s);
	trace__close(t);
	return EXIT_DONE;
}

#define PROCESSES_MAX 3 /* with those that are added */

/* Adds the process at which the chain of waits ends because it was not recorded. false: there is none. */
static bool add_unrecorded(struct why_args *a, char *path)
{
	/* cppcheck-suppress invalidFunctionArg */
	struct search *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char pid[16] = "";
	u32 before = a->pids.n;

	if (s == MAP_FAILED)
		return false;
	*s = (struct search){ a, path, 0 };
	subcommand__call(find_unrecorded, s, NULL);
	snprintf(pid, sizeof(pid), "%u", s->found);
	if (s->found && procs__state(s->found) && procs__state(s->found) != 'Z')
		pid_list__add(&a->pids, "why", "PID", pid);
	munmap(s, sizeof(*s));
	return a->pids.n > before;
}

static int cmd_why(int argc, char **argv)
{
	static struct why_args a = { .seconds = SECONDS };
	const char *tmp = secure_getenv("TMPDIR");
	char folder[256], path[300];
	int status, shown, file = -1;

	if (!parse(&a, argc, argv))
		return EXIT_USAGE;
	if (a.is_help)
		return EXIT_DONE;
	rule_files__add_folder();
	snprintf(folder, sizeof(folder), "%s/sonde-why-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
	if (!mkdtemp(folder)) {
		cmd__error("%s: cannot make a folder for the trace: %s; set TMPDIR to another folder", folder,
			   strerror(errno));
		return EXIT_FAILED;
	}
	snprintf(path, sizeof(path), "%s/trace.sonde", folder);
	a.is_chain = a.pids.n == 1 && (!a.format || !strcmp(a.format, "table"));
	do {
		if (file >= 0)
			close(file);
		unlink(path);
		status = record(&a, path, &file);
		status_line__set("%s", "");
		if (file >= 0)
			inputs__use_file(path, file);
	} while (a.is_chain && status == EXIT_DONE && a.pids.n < PROCESSES_MAX && add_unrecorded(&a, path));
	if (file >= 0 && (status == EXIT_DONE || status == EXIT_PARTLY)) {
		shown = report(&a, path);
		status = shown ? shown : status;
	}
	if ((unlink(path) && errno != ENOENT) || rmdir(folder))
		cmd__error("%s can't be removed: %s", folder, strerror(errno));
	return status;
}

COMMAND(why_command) = {
	.name = "why",
	.doc = "record some processes for five seconds and print what they did with their time",
	.order = 15,
	.run = cmd_why,
};
