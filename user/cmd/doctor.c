// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `sonde doctor` reports what this kernel and user can do, which runtimes run, what is missing and how to add it. */
#include "cmd/doctor.h"

#include "cmd/cmd.h"
#include "sandbox/privileges.h"
#include "util/array.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"Usage: sonde doctor [--format table|csv|json] [--scope user|all] [--trusted-files] [--remote-files]\n"
	"\n"
	"Reports what this kernel and user can do, which families of probes are usable and what a hit of a\n"
	"probe site costs here, which Python and CUDA runtimes run now and how they can be traced, for which CUDA\n"
	"processes device times are available and how, what is missing, and the command that adds it.\n"
	"Changes nothing: it tries its probes on processes that it starts, and records nothing.\n"
	"\n"
	"      --format FORMAT table (for people, the default), csv or json: every row, exact numbers\n" SCOPE_HELP
	"      --trusted-files mark the files that `sonde record --trusted-files` would not probe\n"
	"  -h, --help          this text\n"
	"\n"
	"Exit status: 0 all families usable, 3 some, 1 none, 2 wrong usage.\n"
	"\n"
	"Examples:\n"
	"  sudo sonde doctor\n"
	"  sonde doctor --format json | jq '.tables.families[] | select(.usable != \"yes\")'\n"
	"  sonde doctor --format json | jq -r '.tables.missing[].remedy'\n";

static const struct column check_columns[] = {
	{ "group", "About", VALUE_TEXT, SHOW_NEVER },
	{ "check", "Check", VALUE_TEXT, SHOW_PLAIN },
	{ "state", "State", VALUE_TEXT, SHOW_PLAIN },
	{ "what", "What it means here", VALUE_TEXT, SHOW_PLAIN },
};

static const struct column missing_columns[] = {
	{ "what", "What", VALUE_TEXT, SHOW_PLAIN },
	{ "effect", "What that means", VALUE_TEXT, SHOW_PLAIN },
	{ "remedy", "Remedy", VALUE_TEXT, SHOW_PLAIN },
};

void doctor__check(struct doctor *d, const char *group, const char *check, const char *state, const char *what)
{
	table__add(d->checks, V_TEXT(group), V_TEXT(check), V_TEXT(state), V_TEXT(what));
}

void doctor__missing(struct doctor *d, const char *what, const char *effect, const char *remedy)
{
	if (!array__push(d->problems, d->n_problems,
			 (struct problem){ strdup(what), strdup(effect), strdup(remedy) })) {
		d->out.failed = true;
		return;
	}
}

static void missing(struct doctor *d)
{
	struct table *t = REPORT_TABLE(&d->out, "missing", "What is missing, and the remedy", missing_columns);

	/* People do not need an empty table. */
	t->machine_only = !d->n_problems;
	for (u32 i = 0; i < d->n_problems; i++)
		table__add(t, V_TEXT(d->problems[i].what), V_TEXT(d->problems[i].effect),
			   V_TEXT(d->problems[i].remedy));
}

static int diagnose(struct doctor *d)
{
	char err[512];
	int ret;

	if (features__old_kernel(err, sizeof(err))) {
		cmd__error("%s", err);
		return EXIT_FAILED;
	}
	if (embedded__open(&d->embedded, err, sizeof(err))) {
		cmd__error("%s", err);
		return EXIT_FAILED;
	}
	features__probe(&d->features);
	features__finish(&d->features);
	d->allowed = d->features.bpf;
	d->root = !geteuid();
	d->out.name = "doctor";
	d->checks = REPORT_TABLE(&d->out, "checks", "This machine", check_columns);
	doctor__kernel(d);
	doctor__system(d);
	doctor__policy(d);
	doctor__families(d);
	/* The next checks read other users' processes and files, so they run with few rights. */
	ret = privileges__observer();
	if (ret) {
		cmd__error("cannot drop privileges: %s", cmd__reason(ret));
		return EXIT_FAILED;
	}
	doctor__runtimes(d);
	doctor__gpu(d);
	missing(d);
	ret = !d->usable ? EXIT_FAILED : d->usable < 2 * d->families ? EXIT_PARTLY : EXIT_DONE;
	report_output__finding(&d->out, "%s",
			       ret == EXIT_DONE	  ? "All families of probes are usable here." :
			       ret == EXIT_PARTLY ? "Some families of probes are not or only partly usable here." :
						    "Nothing can be recorded here.");
	if (d->n_problems)
		report_output__finding(&d->out, "%u thing%s missing: see the last table.", d->n_problems,
				       d->n_problems == 1 ? " is" : "s are");
	return ret;
}

static void free_all(struct doctor *d)
{
	for (u32 i = 0; i < d->n_problems; i++) {
		free(d->problems[i].what);
		free(d->problems[i].effect);
		free(d->problems[i].remedy);
	}
	free(d->problems);
	report_output__free(&d->out);
	embedded__close(&d->embedded);
}

static int cmd_doctor(int argc, char **argv)
{
	static const struct option options[] = {
		{ "format", required_argument, NULL, 'F' },
		SCOPE_OPTIONS,
		{ "help", no_argument, NULL, 'h' },
		{},
	};
	struct output_options output = { .rows = -1 };
	struct doctor d = {};
	int c, ret, printed, taken;

	optind = 0;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return EXIT_DONE;
		}
		taken = scope__option(&d.scope, "doctor", c, optarg);
		if (taken < 0)
			return EXIT_USAGE;
		if (taken)
			continue;
		if (c != 'F')
			return cmd__usage("doctor", "unknown option");
		if (!cmd__parse_format("doctor", optarg, &output))
			return EXIT_USAGE;
	}
	if (optind < argc)
		return cmd__usage("doctor", "unexpected argument '%s'", argv[optind]);
	if (!scope__apply_to_processes(&d.scope, "doctor"))
		return EXIT_USAGE;
	cmd__fit_terminal(&output);
	ret = diagnose(&d);
	printed = d.out.tables ? cmd__print(&d.out, &output) : 0;
	free_all(&d);
	return printed ? printed : ret;
}

COMMAND(doctor_command) = {
	.name = "doctor",
	.doc = "report what this machine can trace and what is missing",
	.order = 60,
	.run = cmd_doctor,
};
