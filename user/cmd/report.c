// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `sonde report` opens a trace, runs one report and prints it. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/pager.h"
#include "cmd/pids.h"
#include "cmd/selection.h"
#include "cmd/table_options.h"
#include "output/text.h"
#include "report/origin.h"
#include "report/report.h"

static const char usage[] = "Usage: sonde report FILE.. [REPORT] [OPTIONS]\n"
			    "       sonde report FILE.. why [PID|TID|FUNCTION|NAME] [OPTIONS]\n"
			    "\n"
			    "Reports on a trace, or on several merged into one time line. Without REPORT: a\n"
			    "summary. The reports:\n"
			    "\n";

static const char options_help[] =
	"\n"
	"  --format table|csv|json  table for people (default); the others for programs: every row, exact numbers\n"
	"  --time A..B              only what happened from A to before B: seconds since the trace's start\n"
	"                           (12.5..14, ..3, 3..) or times of day (12:00:05..12:00:06.5); a call that crosses\n"
	"                           A or B counts with its whole duration\n"
	"  -p, --pid PIDS           only these processes: 1,2 or 1 2, as pgrep and pidof print them\n"
	"  --tid TID                only this thread\n"
	"  --sort COLUMN            sort by a column's heading or key: numbers largest first, texts from A to Z;\n"
	"                           +COLUMN in ascending, -COLUMN in descending order\n"
	"  --group-by KEY           report torch: rows by name and by shape, stack or module; reports gil, offcpu, locks,\n"
	"                           osrt, python, cuda-api, cuda-kern, nccl-api: nvtx, the time by range of NVTX\n"
	"  --peak-tflops N          reports torch, math: the machine's peak rate; the report states which share of it was used\n"
	"  --rules FILE             rules on functions of libraries, before those of sonde: docs/adding-a-rule.md\n"
	"  -n, --rows ROWS          at most this many rows per table; 0: all\n"
	"  --no-pager               no pager: on a terminal long output goes through $SONDE_PAGER, $PAGER or less\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage.\n"
	"\n"
	"Examples:\n"
	"  sonde report run.sonde                           a summary\n"
	"  sonde report run.sonde cuda-api -p 4711          CUDA calls of one process\n"
	"  sonde report run.sonde cuda-kern                 kernels by name, and the code that launched them\n"
	"  sonde report run.sonde cuda-trace -n 100         the work of GPUs, in order of start\n"
	"  sonde report run.sonde gil --time 10..20         waits for the GIL from second 10 to second 20\n"
	"  sonde report run.sonde why 4711                  what process 4711 waits for, to the end of the chain\n"
	"  sonde report run.sonde gpu                       how busy GPUs were, and why they were idle\n"
	"  sonde report run.sonde torch --group-by shape    PyTorch's operators by the sizes of their tensors\n"
	"  sonde report run.sonde sched --sort runnable_ns  threads that were runnable and had no CPU\n"
	"  sonde report rank0.sonde rank1.sonde gil         the traces of two machines, aligned by their clocks\n"
	"  sonde report run.sonde cuda-api --format json | jq '.tables.calls[0]'\n";

struct request {
	char *const *files;
	u32 n_files;
	char label[4096 + 32]; /* names the files in messages */
	char *notes; /* about merged traces, one per line */
	const struct report *report;
	const char *subject; /* what the report is about; NULL: none was named */
	const char *time;
	const char *group_by;
	double peak_tflops;
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

enum { OPT_TIME = 256, OPT_TID, OPT_GROUP_BY, OPT_PEAK };

static const struct option long_options[] = {
	{ "time", required_argument, NULL, OPT_TIME },
	{ "pid", required_argument, NULL, 'p' },
	{ "tid", required_argument, NULL, OPT_TID },
	{ "group-by", required_argument, NULL, OPT_GROUP_BY },
	{ "peak-tflops", required_argument, NULL, OPT_PEAK },
	RULES_OPTION,
	TABLE_OPTIONS,
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

/* Parses [REPORT [SUBJECT]] at the end of n arguments. Returns how many are left. */
static int parse_report(struct request *r, int n, char **arguments)
{
	const struct report *last = n > 1 ? report__find(arguments[n - 1]) : NULL;
	const struct report *before = n > 2 ? report__find(arguments[n - 2]) : NULL;

	if (before && before->takes_subject) {
		r->report = before;
		r->subject = arguments[n - 1];
		return n - 2;
	}
	r->report = last;
	return last ? n - 1 : n;
}

/* Parses the arguments that are no options: FILE.. [REPORT [SUBJECT]]. Returns an exit status, or -1 to continue. */
static int parse_arguments(struct request *r, int n, char **arguments)
{
	n = parse_report(r, n, arguments);
	if (!n)
		return cmd__usage("report", "no trace is named: `sonde report FILE.. [REPORT]`");
	if (r->report && report__find(arguments[n - 1]) && access(arguments[n - 1], F_OK))
		return cmd__usage("report", "one report at a time: both '%s' and '%s' are named", arguments[n - 1],
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

static bool parse_peak(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	/* strtod takes hexadecimal numbers, infinities and NaNs, too */
	if (end != text && !*end && strspn(text, "0123456789.eE+-") == strlen(text) && *out > 0 && *out <= 1e9)
		return true;
	cmd__usage("report", "--peak-tflops needs a decimal number more than 0, not '%s'", text);
	return false;
}

/* Returns an exit status, or -1 to continue. */
static int check_options(const struct request *r)
{
	if (r->group_by && !(r->report->groups && text__has_item(r->report->groups, ',', r->group_by)))
		return r->report->groups ? cmd__usage("report", "--group-by of report %s takes one of %s, not '%s'",
						      r->report->name, r->report->groups, r->group_by) :
					   cmd__usage("report", "report %s has no --group-by", r->report->name);
	if (r->peak_tflops > 0 && !r->report->takes_peak)
		return cmd__usage("report", "report %s has no --peak-tflops", r->report->name);
	return -1;
}

/* Returns an exit status, or -1 to continue. */
static int parse(struct request *r, int argc, char **argv)
{
	int c;

	r->output.rows = -1;
	while ((c = getopt_long(argc, argv, "p:n:h", long_options, NULL)) != -1) {
		switch (c) {
		case OPT_TIME:
			r->time = optarg;
			break;
		case 'p':
			if (!pid_list__add_option(&r->pids, "report", argv))
				return EXIT_USAGE;
			break;
		case OPT_TID:
			if (!cmd__parse_number("report", "--tid", optarg, 1, 0xffffffff, &r->tid))
				return EXIT_USAGE;
			break;
		case OPT_GROUP_BY:
			r->group_by = optarg;
			break;
		case OPT_PEAK:
			if (!parse_peak(optarg, &r->peak_tflops))
				return EXIT_USAGE;
			break;
		case 'h':
			return help();
		default:
			if (!table_options__take(&r->output, "report", c, optarg))
				return EXIT_USAGE;
		}
	}
	return parse_arguments(r, argc - optind, argv + optind);
}

static int run_report(const struct request *r, struct query *args, struct trace_facts *facts)
{
	struct report_output out = {
		.name = r->report->name,
		.origin = trace_origin(facts),
		.for_people = r->output.format == OUTPUT_TABLE,
	};
	char what[64];
	int err, status;

	err = report__run(r->report, args, &out);
	if (r->notes && *r->notes)
		report_output__note(&out, "%s", r->notes);
	/* Damaged chunks are known only after reading. */
	facts->damaged = trace__damaged(args->trace);
	snprintf(what, sizeof(what), "report %s", out.name);
	if (err)
		cmd__error("%s: %s failed: %s", r->label, what, cmd__reason(err));
	status = err ? EXIT_FAILED : table_options__print(&r->output, &out, what);
	report_output__free(&out);
	return status;
}

static int with_trace(struct request *r, struct trace *t)
{
	const struct selection_request request = { .command = "report",
						   .label = r->label,
						   .path = r->n_files == 1 ? r->files[0] : NULL,
						   .time = r->time,
						   .pids = &r->pids,
						   .tid = (u32)r->tid };
	struct selection s;
	int status = selection__load(&s, t, &request);

	s.query.subject = r->subject;
	s.query.group_by = r->group_by;
	s.query.peak_tflops = r->peak_tflops;
	if (!status)
		status = run_report(r, &s.query, &s.facts);
	selection__free(&s);
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
	status = check_options(&r);
	if (status >= 0)
		return status;
	if (!inputs__open(&in, r.files, r.n_files))
		return EXIT_FAILED;
	r.output.width = CMD_WIDTH;
	pager__start(&r.output);
	t = read_inputs(&in, &r);
	if (!t)
		return EXIT_FAILED;
	status = with_trace(&r, t);
	trace__close(t);
	free(r.notes);
	return status;
}

COMMAND(report) = {
	.name = "report",
	.doc = "report on a trace: a summary, or one report",
	.order = 20,
	.run = cmd_report,
};
