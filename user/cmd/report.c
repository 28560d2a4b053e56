// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sonde report: opens a trace, runs one report and prints it. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/pids.h"
#include "model/clock.h"
#include "model/facts.h"
#include "report/origin.h"
#include "report/report.h"
#include "util/array.h"

static const char usage[] = "usage: sonde report FILE.. [REPORT] [OPTIONS]\n"
			    "\n"
			    "Says what a trace holds, or several together, on one time line. Without REPORT: a\n"
			    "summary. The reports:\n"
			    "\n";

static const char options_help[] =
	"\n"
	"  --format table|csv|json  table for people (default); the others for programs: every row, exact numbers\n"
	"  --time A..B              only what happened from A until before B: seconds since the trace's start\n"
	"                           (12.5..14, ..3, 3..) or times of day (12:00:05..12:00:06.5); what lies across\n"
	"                           a border counts with its whole length\n"
	"  -p, --pid PIDS           only these processes: 1,2 or 1 2, as pgrep and pidof print them\n"
	"  --tid TID                only this thread\n"
	"  --sort COLUMN            by a column's heading or key; figures largest first, +COLUMN smallest first,\n"
	"                           -COLUMN the other way round for texts\n"
	"  -n, --rows ROWS          at most so many rows a table; 0: all\n"
	"\n"
	"examples:\n"
	"  sonde report run.sonde                           a summary\n"
	"  sonde report run.sonde cuda-api -p 4711          CUDA calls of one process\n"
	"  sonde report run.sonde cuda-kern                 kernels by name, and which code launched most\n"
	"  sonde report run.sonde cuda-trace -n 100         what the GPUs did, one after the other\n"
	"  sonde report run.sonde gil --time 10..20         who waited for the GIL in these ten seconds\n"
	"  sonde report run.sonde gpu                       how busy GPUs were, and why not more\n"
	"  sonde report run.sonde sched --sort runnable_ns  threads that were runnable and had no CPU\n"
	"  sonde report rank0.sonde rank1.sonde gil         two machines' traces, laid together by their clocks\n"
	"  sonde report run.sonde cuda-api --format json | jq '.tables.calls[0]'\n";

struct request {
	char *const *files;
	u32 n_files;
	char label[256]; /* the files as printed */
	char *notes; /* on what was merged, a line each */
	const struct report *report;
	const char *time;
	struct pid_list pids;
	u64 tid;
	struct output_options output;
};

static void print_report(const struct report *r, void *arg)
{
	fprintf(arg, "  %-9s  %s\n", r->name, r->doc);
}

static int help(void)
{
	fputs(usage, stdout);
	report__each(print_report, stdout);
	fputs(options_help, stdout);
	return EXIT_DONE;
}

enum { OPT_FORMAT = 256, OPT_TIME, OPT_TID, OPT_SORT };

static const struct option long_options[] = {
	{ "format", required_argument, NULL, OPT_FORMAT },
	{ "time", required_argument, NULL, OPT_TIME },
	{ "pid", required_argument, NULL, 'p' },
	{ "tid", required_argument, NULL, OPT_TID },
	{ "sort", required_argument, NULL, OPT_SORT },
	{ "rows", required_argument, NULL, 'n' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

/* The arguments that are no options: FILE [REPORT]. An exit status, or -1: go on. */
static int parse_arguments(struct request *r, int n, char **arguments)
{
	if (n > 1) {
		r->report = report__find(arguments[n - 1]);
		n -= r->report != NULL;
	}
	if (!n)
		return cmd__usage("report", "which trace? `sonde report FILE.. [REPORT]`");
	if (r->report && report__find(arguments[n - 1]) && access(arguments[n - 1], F_OK))
		return cmd__usage("report", "one report at a time: '%s' and '%s' are both", arguments[n - 1],
				  r->report->name);
	if (n > 1 && strchr(arguments[n - 1], '.') == NULL && strchr(arguments[n - 1], '/') == NULL)
		return cmd__usage("report", "there is no report '%s': `sonde list reports` names them",
				  arguments[n - 1]);
	r->files = arguments;
	r->n_files = (u32)n;
	if (n > 1)
		snprintf(r->label, sizeof(r->label), "%s and %d more", arguments[0], n - 1);
	else
		snprintf(r->label, sizeof(r->label), "%s", arguments[0]);
	if (!r->report)
		r->report = report__find("summary");
	return -1;
}

/* -p PIDS; the arguments after it may be further ones, as in `-p $(pgrep -f x)`. */
static bool choose_pids(struct request *r, char **argv)
{
	int n = pid_list__add(&r->pids, "report", "-p", optarg) ?
			pid_list__add_arguments(&r->pids, "report", "-p", argv + optind) :
			-EINVAL;

	if (n > 0)
		optind += n;
	return n >= 0;
}

/* An exit status, or -1: go on. */
static int parse(struct request *r, int argc, char **argv)
{
	u64 rows;
	int c;

	r->output.rows = -1;
	while ((c = getopt_long(argc, argv, "p:n:h", long_options, NULL)) != -1) {
		switch (c) {
		case OPT_FORMAT:
			if (!cmd__parse_format("report", optarg, &r->output))
				return EXIT_USAGE;
			break;
		case OPT_TIME:
			r->time = optarg;
			break;
		case 'p':
			if (!choose_pids(r, argv))
				return EXIT_USAGE;
			break;
		case OPT_TID:
			if (!cmd__parse_number("report", "--tid", optarg, 1, 0xffffffff, &r->tid))
				return EXIT_USAGE;
			break;
		case OPT_SORT:
			r->output.sort = optarg;
			break;
		case 'n':
			if (!cmd__parse_number("report", "-n", optarg, 0, 0xffffffff, &rows))
				return EXIT_USAGE;
			r->output.rows = (s64)rows;
			break;
		case 'h':
			return help();
		default:
			fputs("Try 'sonde report --help'.\n", stderr);
			return EXIT_USAGE;
		}
	}
	return parse_arguments(r, argc - optind, argv + optind);
}

static int sort_failed(const struct report_output *out, const char *column)
{
	const struct table *t;
	u32 i;

	cmd__error("no table of report %s has a column '%s'; there are:", out->name, column);
	for (t = out->tables; t; t = t->next) {
		fprintf(stderr, "  %s:", t->name);
		for (i = 0; i < t->n_columns; i++)
			fprintf(stderr, " %s", t->columns[i].key);
		putc('\n', stderr);
	}
	return EXIT_USAGE;
}

struct ns_pids {
	const struct names *names;
	u32 pid; /* index of the column */
};

static struct value ns_pid(const struct value *row, void *arg)
{
	const struct ns_pids *n = arg;
	const struct task *t = row[n->pid].type == VALUE_U64 ? names__task(n->names, (u32)row[n->pid].u, 0) : NULL;

	return t && t->ns_pid ? V_U64(t->ns_pid) : V_NONE;
}

/* Pids are of sonde's own namespace; in CSV and JSON the pid in the process's container is given beside them. */
static void add_ns_pids(struct report_output *out, const struct names *names)
{
	static const struct column column = { "ns_pid", "Pid in its namespace", VALUE_U64, SHOW_NEVER };

	for (struct table *t = out->tables; t; t = t->next) {
		int pid = table__column(t, "pid");
		struct ns_pids n = { .names = names, .pid = (u32)pid };

		if (pid >= 0)
			table__insert(t, n.pid + 1, &column, ns_pid, &n);
	}
}

/* Is it "pid", "waker_tid"? */
static bool is_task_key(const char *key)
{
	size_t len = strlen(key);

	return len >= 3 && (!strcmp(key + len - 3, "pid") || !strcmp(key + len - 3, "tid"));
}

static void put_number(const struct names *names, const char *key, struct value *value)
{
	if (value->type == VALUE_U64 && is_task_key(key))
		value->u = names__number(names, (u32)value->u);
}

/* Reports have ids in place of reused pids and tids; printed are the pids and tids. */
static void put_numbers(struct report_output *out, const struct names *names)
{
	for (struct table *t = out->tables; t; t = t->next)
		for (u32 i = 0; i < t->n_rows; i++)
			for (u32 c = 0; c < t->n_columns; c++)
				put_number(names, t->columns[c].key, &table__row(t, i)[c]);
	for (u32 i = 0; i < out->n_findings; i++)
		for (u32 k = 0; k < out->findings[i].n_figures; k++)
			put_number(names, out->findings[i].figures[k].key, &out->findings[i].figures[k].value);
}

static int run_report(const struct request *r, struct query *args, struct trace_facts *facts)
{
	struct report_output out = { .name = r->report->name, .origin = trace_origin(facts) };
	int err, status;

	err = r->report->run(args, &out);
	if (!err)
		add_ns_pids(&out, args->names);
	if (!err)
		put_numbers(&out, args->names);
	if (r->notes && *r->notes)
		report_output__note(&out, "%s", r->notes);
	/* only reading finds a damaged chunk */
	facts->damaged = trace__damaged(args->trace);
	if (!err && r->output.sort)
		err = report_output__sort(&out, r->output.sort);
	if (err == -ENOENT && r->output.sort) {
		status = sort_failed(&out, r->output.sort);
	} else if (err) {
		cmd__error("%s: report %s failed: %s", r->label, out.name, cmd__reason(err));
		status = EXIT_FAILED;
	} else {
		status = cmd__print(&out, &r->output);
	}
	report_output__free(&out);
	return status;
}

/* Spans are cut where the traced time begins and ends, or further out where --time asks for that. */
static void set_windows(struct trace_facts *f, struct trace *t, const struct query *args)
{
	if (!f->n_windows)
		return;
	if (args->from && args->from < f->windows[0].from)
		f->windows[0].from = args->from;
	if (args->to > f->windows[f->n_windows - 1].to)
		f->windows[f->n_windows - 1].to = args->to;
	trace__set_windows(t, f->windows, f->n_windows);
}

/* Warns about selected processes that the trace does not have, as far as it names its processes. */
static void warn_unknown(const struct request *r, const struct query *args)
{
	for (u32 i = 0; i < r->pids.n && query__has_family(args, "proc"); i++)
		if (!names__task(args->names, r->pids.list[i], 0))
			cmd__error("%s: it names no process %u", r->label, r->pids.list[i]);
}

struct id_list {
	u32 *list;
	u32 n;
	int err;
};

static void add_id(u32 id, void *arg)
{
	struct id_list *ids = arg;

	if (!array__push(ids->list, ids->n, id)) {
		ids->err = -ENOMEM;
		return;
	}
}

/* Several processes and threads may have had each number that -p and --tid name. 0 or -ENOMEM. */
static int find_ids(const struct request *r, struct query *args, struct id_list *pids, struct id_list *tids)
{
	for (u32 i = 0; i < r->pids.n; i++)
		names__each_id(args->names, r->pids.list[i], add_id, pids);
	if (r->tid)
		names__each_id(args->names, (u32)r->tid, add_id, tids);
	args->pids = (struct trace_ids){ pids->list, pids->n };
	args->tids = (struct trace_ids){ tids->list, tids->n };
	return pids->err ? pids->err : tids->err;
}

static int with_trace(struct request *r, struct trace *t)
{
	struct trace_facts facts = { 0 };
	struct query args = { .trace = t, .facts = &facts };
	struct id_list pids = {}, tids = {};
	char why[512];
	int err, status;

	args.start = trace__head(t)->monotonic ? trace__head(t)->monotonic : trace__summary(t)->first;
	if (r->time && clock__parse_range(r->time, args.start, trace__head(t), &args.from, &args.to, why, sizeof(why)))
		return cmd__usage("report", "%s", why);
	err = trace_facts__load(&facts, t, r->label, args.from, args.to);
	/* what was recorded while probes were being attached or detached is whole for no probe */
	if (!args.from && facts.live > args.start)
		args.from = facts.live;
	if (!args.to && facts.stop < facts.summary->last)
		args.to = facts.stop;
	set_windows(&facts, t, &args);
	facts.pids = (struct trace_ids){ r->pids.list, r->pids.n };
	facts.tid = (u32)r->tid;
	if (!err)
		err = names__create(&args.names, trace__schema(t));
	if (!err)
		err = names__load(args.names, t);
	if (!err)
		err = find_ids(r, &args, &pids, &tids);
	if (err) {
		cmd__error("%s: cannot read it: %s", r->label, cmd__reason(err));
		status = EXIT_FAILED;
	} else {
		warn_unknown(r, &args);
		status = run_report(r, &args, &facts);
	}
	free(pids.list);
	free(tids.list);
	names__free(args.names);
	trace_facts__free(&facts);
	return status;
}

static struct trace *read_inputs(struct inputs *in, struct request *r)
{
	in->sources = r->report->reads_sources;
	return inputs__read(in, &r->notes);
}

static int cmd_report(int argc, char **argv)
{
	struct request r = { 0 };
	int status = parse(&r, argc, argv);
	struct inputs in;
	struct trace *t;

	if (status >= 0)
		return status;
	if (!r.report) {
		cmd__error("this build has no summary: name a report (`sonde list reports`)");
		return EXIT_FAILED;
	}
	t = inputs__open(&in, r.files, r.n_files) ? read_inputs(&in, &r) : NULL;
	if (!t)
		return EXIT_FAILED;
	r.output.color = r.output.format == OUTPUT_TABLE && cmd__color(stdout);
	status = with_trace(&r, t);
	trace__close(t);
	free(r.notes);
	return status;
}

COMMAND(report) = {
	.name = "report",
	.doc = "say what a trace holds: a summary, or one report",
	.order = 20,
	.run = cmd_report,
};
