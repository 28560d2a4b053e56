// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sonde diff: what became slower between two traces, or between two parts of one. */
#include <getopt.h>
#include <stdlib.h>

#include "cmd/cmd.h"
#include "cmd/pager.h"
#include "cmd/selection.h"
#include "cmd/table_options.h"
#include "diff/diff.h"
#include "report/origin.h"

static const char help[] =
	"Usage: sonde diff BEFORE AFTER [OPTIONS]\n"
	"       sonde diff FILE --before A..B --after A..B [OPTIONS]\n"
	"\n"
	"Prints what became slower between two traces, or between two parts of one: findings,\n"
	"CPU time by function, causes of waiting, and calls. Processes and threads are\n"
	"matched by script and name. A difference counts as a change only if it exceeds the\n"
	"noise within the traces; if nothing changed, the first line says so.\n"
	"\n"
	"  --before A..B            only this part of the first trace, as --time of report: seconds since its\n"
	"                           start (12.5..14, ..3, 3..) or times of day\n"
	"  --after A..B             only this part of the second trace\n"
	"  -p, --pid PIDS           only these processes; one list has the pids of both traces: 1,2 or 1 2\n"
	"  --format table|csv|json  table for people (default); the others for programs: every row, exact numbers\n"
	"  --sort COLUMN            by a column's heading or key; figures largest first, +COLUMN smallest first,\n"
	"                           -COLUMN descending for texts\n"
	"  --rules FILE             rules on functions of libraries, before those of sonde: docs/adding-a-rule.md\n"
	"  -n, --rows ROWS          at most this many rows per table; 0: all\n"
	"  --no-pager               no pager: on a terminal long output goes through $SONDE_PAGER, $PAGER or less\n"
	"\n"
	"Exit status: 0 compared, whether or not anything changed; 1 failed; 2 wrong usage\n"
	"\n"
	"Examples:\n"
	"  sonde diff monday.sonde today.sonde                  what became slower since Monday\n"
	"  sonde diff run.sonde --before 0..10 --after 20..30   the same of two parts of one trace\n"
	"  sonde diff a.sonde b.sonde -p 4711,5822              only one process of each\n"
	"  sonde diff a.sonde b.sonde --format json | jq '.findings[].text'\n";

struct diff_request {
	char *files[DIFF_SIDES];
	const char *times[DIFF_SIDES];
	struct pid_list pids;
	struct output_options output;
};

enum { OPT_BEFORE = 256, OPT_AFTER };

static const struct option long_options[] = {
	{ "before", required_argument, NULL, OPT_BEFORE },
	{ "after", required_argument, NULL, OPT_AFTER },
	{ "pid", required_argument, NULL, 'p' },
	RULES_OPTION,
	TABLE_OPTIONS,
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

/* An exit status, or -1: go on. */
static int parse_files(struct diff_request *r, int n, char **files)
{
	if (!n)
		return cmd__usage("diff", "which traces? `sonde diff BEFORE AFTER`");
	if (n > DIFF_SIDES)
		return cmd__usage("diff", "two traces, not %d: `sonde diff BEFORE AFTER`", n);
	if (n == 1 && (!r->times[DIFF_BEFORE] || !r->times[DIFF_AFTER]))
		return cmd__usage("diff", "one trace: --before A..B and --after A..B select the times to compare");
	r->files[DIFF_BEFORE] = files[0];
	r->files[DIFF_AFTER] = files[n - 1];
	return -1;
}

/* An exit status, or -1: go on. */
static int parse(struct diff_request *r, int argc, char **argv)
{
	int c;

	r->output.rows = -1;
	while ((c = getopt_long(argc, argv, "p:n:h", long_options, NULL)) != -1) {
		switch (c) {
		case OPT_BEFORE:
			r->times[DIFF_BEFORE] = optarg;
			break;
		case OPT_AFTER:
			r->times[DIFF_AFTER] = optarg;
			break;
		case 'p':
			if (!pid_list__add_option(&r->pids, "diff", argv))
				return EXIT_USAGE;
			break;
		case 'h':
			fputs(help, stdout);
			return EXIT_DONE;
		default:
			if (!table_options__take(&r->output, "diff", c, optarg))
				return EXIT_USAGE;
		}
	}
	return parse_files(r, argc - optind, argv + optind);
}

static const char *const side_names[] = { [DIFF_BEFORE] = "before", [DIFF_AFTER] = "after" };

/* What each of the two traces lacks */
static void print_origins(FILE *file, const struct output_options *options, const char *prefix, const void *arg)
{
	const struct selection *sides = arg;
	struct report_origin origin;
	char side[64];

	for (u32 i = 0; i < DIFF_SIDES; i++) {
		origin = trace_origin(&sides[i].facts);
		snprintf(side, sizeof(side), "%s%s: ", prefix, side_names[i]);
		origin.print(file, options, side, origin.arg);
	}
}

static void write_origins(struct json_writer *w, const void *arg)
{
	const struct selection *sides = arg;
	struct report_origin origin;

	for (u32 i = 0; i < DIFF_SIDES; i++) {
		origin = trace_origin(&sides[i].facts);
		json_writer__object(w, side_names[i]);
		origin.json(w, origin.arg);
		json_writer__end(w);
	}
}

static int compare(const struct diff_request *r, struct selection *sides)
{
	const struct query *queries[] = { &sides[DIFF_BEFORE].query, &sides[DIFF_AFTER].query };
	struct report_output out = { .name = "diff",
				     .origin = { print_origins, write_origins, sides },
				     .for_people = r->output.format == OUTPUT_TABLE };
	int err = diff__run(queries, &out), status;

	for (u32 i = 0; i < DIFF_SIDES; i++)
		sides[i].facts.damaged = trace__damaged(queries[i]->trace);
	if (err)
		cmd__error("%s and %s: cannot compare them: %s", r->files[0], r->files[1], cmd__reason(err));
	status = err ? EXIT_FAILED : table_options__print(&r->output, &out, "diff");
	report_output__free(&out);
	return status;
}

static int with_traces(const struct diff_request *r, struct trace *const *traces)
{
	struct selection sides[DIFF_SIDES] = {};
	int status = EXIT_DONE;

	for (u32 i = 0; !status && i < DIFF_SIDES; i++) {
		const struct selection_request request = { .command = "diff",
							   .label = r->files[i],
							   .path = r->files[i],
							   .time = r->times[i],
							   .pids = &r->pids,
							   .only_traced = true,
							   .may_lack = r->pids.n > 1 };

		status = selection__load(&sides[i], traces[i], &request);
	}
	if (!status)
		status = compare(r, sides);
	for (u32 i = 0; i < DIFF_SIDES; i++)
		selection__free(&sides[i]);
	return status;
}

static int cmd_diff(int argc, char **argv)
{
	struct diff_request r = { 0 };
	struct trace *traces[DIFF_SIDES] = { 0 };
	int status = parse(&r, argc, argv);
	struct inputs in;

	if (status >= 0)
		return status;
	if (!inputs__open_each(&in, r.files, DIFF_SIDES))
		return EXIT_FAILED;
	status = EXIT_FAILED;
	r.output.width = CMD_WIDTH;
	pager__start(&r.output);
	if (inputs__read_each(&in, traces))
		status = with_traces(&r, traces);
	for (u32 i = 0; i < DIFF_SIDES; i++)
		trace__close(traces[i]);
	return status;
}

COMMAND(diff_command) = {
	.name = "diff",
	.doc = "compare two traces: what became slower, beyond noise",
	.order = 25,
	.run = cmd_diff,
};
