// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/cmd.h"
#include "cmd/record.h"
#include "cmd/rule_files.h"
#include "cmd/shim.h"
#include "cmd/status_line.h"
#include "cmd/table_options.h"
#include "model/line.h"
#include "output/file.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"Usage: sonde record [-o FILE] [-f] [-t [+]FAMILY,..] [-p PID..] [--comm NAME,..] [--cgroup PATH]\n"
	"                    [-F HZ] [--off-cpu[=NS]] [--delay SECONDS|signal] [--start-paused] [-d SECONDS]\n"
	"                    [--step RANGE] [--schedule skip_first=N,wait=N,warmup=N,active=N,repeat=N]\n"
	"                    [--capture-range RANGE] [--capture-range-end stop|repeat[:N]] [--no-args] [--no-source]\n"
	"                    [--scope self|user|all] [--trusted-files] [--remote-files] [--FAMILY=OPTION]\n"
	"                    [--FAMILY-OPTION NUMBER] [--cost-limit PERCENT|none] [--inject] [--torch-budget 2%|none]\n"
	"                    [--function MODULE:QUALNAME] [--functions-trace FILE]\n"
	"                    [--print] [--report] [--rules FILE] [-q] [-- CMD ARGS]\n"
	"\n"
	"Traces what the filters select, and writes a trace file. Without a filter it traces calls of CUDA, NCCL\n"
	"and cuBLAS, waits for the GIL and starts of processes everywhere; the scheduler, samples and waits of\n"
	"processes with CPython or CUDA, and of busy native ones (--sched=all and the like: of all processes).\n"
	"The recording ends at Ctrl-C (at once at a second Ctrl-C), after the time of -d, or when CMD or all\n"
	"processes of -p have ended. No process is restarted; only --inject changes any. Needs root.\n"
	"\n"
	"  -o, --output FILE     output file, of mode 0600; default: sonde-DATE-TIME.sonde\n"
	"  -f, --force           overwrite FILE\n"
	"  -t, --trace FAMILIES  families to trace (`sonde list families`): A,B replaces the default set, +A,+B adds\n"
	"                        to it; lean: the default set without scheduler, samples and waits\n"
	"  -p, --pid PIDS        only these processes and their present and future descendants: 1,2 or 1 2, as\n"
	"                        $(pgrep -f NAME) prints them\n"
	"      --comm NAMES      only processes with these names in /proc/PID/comm, while they have\n"
	"                        them; shell patterns (*, ?, [a-z]) of at most 15 characters\n"
	"      --cgroup PATH     only processes in this cgroup or below it, while they are there; a directory of\n"
	"                        a cgroup file system, or a path below the cgroup v2 mount; repeatable\n"
	"                        (of -p, --comm and --cgroup, a process must match each that is given)\n"
	"  -F, --frequency HZ    sample the Python and native stack of the thread that runs on each CPU, this many\n"
	"                        times a second (reports python, lines, stacks); in the default set: 49\n"
	"      --off-cpu[=NS]    record each wait of NS or longer: what the thread waited for, and its stack;\n"
	"                        default of NS: 1000000 (1 ms). -F and --off-cpu record processes with CPython or\n"
	"                        CUDA and busy native ones; with a filter, all processes that it selects\n"
	"      --scope SCOPE     self: only CMD and what it starts; user: only the caller's processes, also by sudo;\n"
	"                        all: of all users, which is the default for root, also by sudo\n"
	"      --trusted-files   probe only files that belong to root or to the user of a process\n"
	"                        that maps them (=no: all files)\n"
	"      --delay SEC       begin after this many seconds, or with `signal` when SIGUSR1 arrives; no probe is\n"
	"                        attached before that\n"
	"      --start-paused    begin paused. SIGUSR1 resumes a recording, and SIGUSR2 pauses it. In a pause\n"
	"                        nothing is recorded, and the probes of PyTorch's operators are detached. With CMD\n"
	"                        but without this option, sonde passes both signals on to CMD\n"
	"      --step RANGE      a training step ends at the end of each range of this name (record_function);\n"
	"                        NAME*: of each range that begins with NAME; nvtx:NAME, nvtx:NAME@DOMAIN: of each\n"
	"                        range of NVTX, as for --capture-range; default: at the end of the optimizer's\n"
	"                        step(); adds family torch\n"
	"      --schedule STEPS  record only some steps, as torch.profiler.schedule() does: skip_first=N,wait=N,warmup=N,\n"
	"                        active=N,repeat=N; the probes of PyTorch's operators are attached in the warmup\n"
	"                        and detached after the active steps; adds family torch. `sonde export --to cycle`\n"
	"                        makes a trace of one cycle\n"
	"      --capture-range R record each process only in its ranges, exact to the call; probes are attached\n"
	"                        before. cudaProfilerApi: from cudaProfilerStart() to cudaProfilerStop();\n"
	"                        nvtx:NAME: an NVTX range of this name in the default domain; nvtx:NAME@DOMAIN: in\n"
	"                        this domain; both may be shell patterns\n"
	"      --capture-range-end END  stop: the recording ends with the first range (of each process that has\n"
	"                        begun one); repeat: later ranges are recorded, too; repeat:N: N of each process,\n"
	"                        then the recording ends. Default: stop\n"
	"  -d, --duration SEC    stop after this many seconds of tracing, including pauses; fractions allowed\n"
	"      --cost-limit PERCENT  record the scheduler and waits in slices of time if recording all of it would\n"
	"                        take more than this percentage of the processes' CPU time; none: no limit. The first\n"
	"                        10 s are recorded without a limit.\n"
	"                        Default: 1; none if -t selects the families (without +), as what was requested by\n"
	"                        name should be complete\n"
	"      --no-args         leave command lines and the folders of paths out of the trace (except for\n"
	"                        folders of Python's own library), and source text\n"
	"      --no-source       leave lines of source text out of the trace. Otherwise it has those lines of source\n"
	"                        files that stacks are in, without those of libraries and packages\n"
	"      --FAMILY=OPTION   turn on an option of a family, such as --cuda=all, or several, such as\n"
	"                        --torch=shapes,stacks (`sonde list options`)\n"
	"      --FAMILY-OPTION N set a number of a family, such as --syscall-threshold 1000 (`sonde list options`)\n"
	"      --remote-files    examine also libraries on network and FUSE file systems, whose server may not\n"
	"                        answer; by default they are reported and not examined. /etc/sonde.conf may set\n"
	"                        --scope, --trusted-files and --remote-files; =no overrides it\n"
	"      --inject          record the times of GPU work, or the ranges of NVTX (-t nvtx), of running\n"
	"                        processes: first load sonde's library into the processes of -p, and into those\n"
	"                        with CUDA that the filters select (`sonde inject --help`); adds family gpu if -t\n"
	"                        requests none that needs it. With -t torch the library also records PyTorch, for\n"
	"                        much less than probes\n"
	"      --torch-budget 2%|none  with -t torch --inject: record only as many steps of training as cost 2% of\n"
	"                        the program's CPU time (the default), or all\n"
	"      --function NAME   record each call of this Python function, MODULE:QUALNAME (train:Model.forward);\n"
	"                        repeatable. CPython from 3.8 on; running processes need --inject. --torch=functions:\n"
	"                        each call of a torch.nn.Module with the shapes of its tensors, backward, and the\n"
	"                        step of each optimizer. All add family functions (docs/python-functions.md)\n"
	"      --functions-trace FILE  the same for the functions of a JSON file of Nsight Systems\n"
	"                        (--python-functions-trace)\n"
	"      --print           also print each event when it arrives, one per line\n"
	"      --report          print the summary (`sonde report FILE`) once the recording has ended\n"
	"      --rules FILE      rules on functions of libraries, for findings: docs/adding-a-rule.md\n"
	"  -q, --quiet           print only errors, warnings and losses\n"
	"  -h, --help            this text\n"
	"  -- CMD ARGS           run CMD, and trace it and what it starts, from its first instruction to its end.\n"
	"                        sonde passes signals on to CMD. -d ends the tracing, not CMD\n"
	"\n"
	"Exit status: 0 done, also if the kernel refused a part of a family (a message names it); 1 failed;\n"
	"2 wrong usage; 3 done but a whole family, a library or a requested process could not be attached.\n"
	"With CMD: the exit status of CMD, 128+N if signal N ended CMD, 125 if sonde failed, 126 if CMD can't be\n"
	"run, 127 if it is not found.\n"
	"\n"
	"Examples:\n"
	"  sonde record -d 10 --report            ten seconds of the default set, then the summary\n"
	"  sonde record -F 99 --off-cpu -p 4711   where process 4711 computes, and where it waits\n"
	"  sonde record -p 4711 -t +syscall       one process and its children, with their system calls\n"
	"  sonde record -p $(pgrep -f gunicorn) -d 10\n"
	"  sonde record --inject -p 4711 -d 10    a running process, with the work of its GPUs\n"
	"  sonde record -t cuda --cuda=all --print -d 2\n"
	"  sonde record --cuda=stacks -- python3 train.py   with the Python stack at launches, copies and waits\n"
	"  sonde record --comm 'python*' --cgroup /system.slice/train.service -d 10\n"
	"  sonde record -o run.sonde -- python3 train.py --epochs 1\n";

/* State of --print, which prints a line for each event but metadata, which `sonde info` prints. */
struct printer {
	struct line_context context;
	struct names *names;
};

static void print_record(const struct schema *schema, const void *record, u32 size, void *arg)
{
	const struct event *e = record;
	struct printer *p = arg;
	struct view v;

	if (!p->names && names__create(&p->names, schema))
		return;
	p->context.schema = schema;
	p->context.names = p->names;
	if (!p->context.start)
		p->context.start = e->time;
	if (view__of_record(&v, schema, record, size))
		names__feed(p->names, &v);
	if (EVENT_FAMILY(e->id))
		line__print_record(stdout, &p->context, record, size);
}

/* Writes sonde's own command line, which the trace stores. */
static void command_line(int argc, char **argv, char *buf, size_t len)
{
	size_t used = 0;

	for (int i = 0; i < argc && used < len; i++)
		used += snprintf(buf + used, len - used, "%s%s", i ? " " : "", argv[i]);
}

static int parse_pids(struct record_args *a, char **argv)
{
	if (!*optarg) {
		fprintf(stderr,
			"sonde record: -p names no process; without -p sonde traces what `sonde record --help` lists\n");
		return -EINVAL;
	}
	return pid_list__add_option(&a->pids, "record", argv) ? 0 : -EINVAL;
}

/* Splits a copy of the value of --comm at its commas. */
static int parse_comms(struct record_args *a, const char *value)
{
	char *save, *copy = strdup(value), *item;
	int err = record_options__copy(a, copy);

	if (err)
		return err;
	item = strtok_r(copy, ",", &save);
	if (!item) {
		fprintf(stderr, "sonde record: --comm names no process; without it all names are traced\n");
		return -EINVAL;
	}
	for (; item && a->session.n_comms < COMM_GLOBS + 1; item = strtok_r(NULL, ",", &save))
		a->comms[a->session.n_comms++] = item;
	return 0;
}

static int parse_cgroup(struct record_args *a, const char *path)
{
	if (a->session.n_cgroups <= FILTER_CGROUPS)
		a->cgroups[a->session.n_cgroups++] = path;
	return 0;
}

static int parse_seconds(const char *option, const char *arg, double *out)
{
	char *end;

	*out = strtod(arg, &end);
	/* Only decimal numbers are allowed; strtod takes hexadecimal, infinities and NaNs too. */
	if (end == arg || *end || strspn(arg, "0123456789.eE+-") != strlen(arg) || !(*out > 0) || *out > 1e9) {
		fprintf(stderr, "sonde record: %s needs seconds, a decimal number more than 0, not '%s'\n", option,
			arg);
		return -EINVAL;
	}
	return 0;
}

static int parse_delay(struct record_args *a, const char *arg)
{
	a->delay_signal = !strcmp(arg, "signal");
	return a->delay_signal ? 0 : parse_seconds("--delay", arg, &a->delay);
}

/* Parses the command after "--". */
static int parse_command(struct record_args *a, int argc, char **argv)
{
	if (optind && !strcmp(argv[optind - 1], "--")) {
		if (optind < argc) {
			a->launch.argv = argv + optind;
			return 0;
		}
		fprintf(stderr, "sonde record: -- needs a command after it\n");
		return -EINVAL;
	}
	if (optind == argc)
		return 0;
	fprintf(stderr, "sonde record: unexpected argument '%s'; put the command to be traced after --\n",
		argv[optind]);
	return -EINVAL;
}

/* Refuses --inject without a filter, so that users select the processes that are changed. */
static int check_inject(struct record_args *a)
{
	if (!a->inject)
		return 0;
	if (!record_options__shim_needs(a) && record_options__add_family(a, "gpu"))
		return -ENOMEM;
	if (a->session.n_pids || a->session.n_comms || a->session.n_cgroups || a->launch.argv)
		return 0;
	fprintf(stderr, "sonde record: --inject needs processes: -p, --comm or --cgroup\n");
	return -EINVAL;
}

/* The names reach a process when the library is loaded into it, or from the environment of the command. */
static int check_functions(struct record_args *a)
{
	bool requests = shim__needs(a->session.families) & SHIM_NEED_FUNCTIONS;

	if (requests && !a->functions.text) {
		fprintf(stderr, "sonde record: family functions needs the functions: --function MODULE:QUALNAME, "
				"--functions-trace FILE or --torch=functions\n");
		return -EINVAL;
	}
	if (!a->functions.text)
		return 0;
	if (!a->inject && !a->launch.argv) {
		fprintf(stderr,
			"sonde record: functions of a running process need --inject, which loads sonde's library "
			"into the process; else put the command after --\n");
		return -EINVAL;
	}
	return requests ? 0 : record_options__add_family(a, "functions");
}

#define OPTION_OF_FAMILY 1 /* no character */

/* Returns 0 to continue, 1 after --help, negative errno for wrong usage. */
static int parse(struct record_args *a, int argc, char **argv)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "force", no_argument, NULL, 'f' },
		{ "trace", required_argument, NULL, 't' },
		{ "pid", required_argument, NULL, 'p' },
		{ "duration", required_argument, NULL, 'd' },
		{ "print", no_argument, NULL, 'P' },
		{ "comm", required_argument, NULL, 'C' },
		{ "cgroup", required_argument, NULL, 'G' },
		{ "frequency", required_argument, NULL, 'F' },
		{ "off-cpu", optional_argument, NULL, 'O' },
		{ "delay", required_argument, NULL, 'W' },
		{ "no-args", no_argument, NULL, 'A' },
		{ "no-source", no_argument, NULL, 'N' },
		{ "schedule", required_argument, NULL, 'S' },
		/* a family: getopt_long would take it for an abbreviation of the option above */
		{ "sched", optional_argument, NULL, OPTION_OF_FAMILY },
		{ "step", required_argument, NULL, 'T' },
		{ "capture-range", required_argument, NULL, 'X' },
		{ "capture-range-end", required_argument, NULL, 'E' },
		{ "start-paused", no_argument, NULL, 'U' },
		{ "inject", no_argument, NULL, 'I' },
		{ "function", required_argument, NULL, 'Y' },
		{ "functions-trace", required_argument, NULL, 'J' },
		/* a family: not an abbreviation of the options above */
		{ "functions", optional_argument, NULL, OPTION_OF_FAMILY },
		{ "cost-limit", required_argument, NULL, 'L' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "report", no_argument, NULL, 'R' },
		RULES_OPTION,
		SCOPE_OPTIONS,
		{ "help", no_argument, NULL, 'h' },
		{},
	};
	double seconds = 0;
	int c, err = 0;

	opterr = 0;
	optind = 0;
	while (!err && (c = getopt_long(argc, argv, "+:o:ft:p:d:F:qh", options, NULL)) != -1) {
		switch (c) {
		case 'o':
			if (!*optarg) {
				fprintf(stderr, "sonde record: -o names no file\n");
				err = -EINVAL;
			} else if (!strcmp(optarg, "-")) {
				fprintf(stderr, "sonde record: -o - would be a file named '-'; standard output is "
						"-o /dev/stdout, that file -o ./-\n");
				err = -EINVAL;
			}
			a->output = optarg;
			break;
		case 'f':
			a->force = true;
			break;
		case 't':
			a->session.families = optarg;
			break;
		case 'p':
			err = parse_pids(a, argv);
			break;
		case 'd':
			err = parse_seconds("-d", optarg, &seconds);
			a->session.duration = err ? 0 : (u64)(seconds * 1e9);
			break;
		case 'C':
			err = parse_comms(a, optarg);
			break;
		case 'G':
			err = parse_cgroup(a, optarg);
			break;
		case 'F':
			err = record_options__frequency(a, optarg);
			break;
		case 'O':
			err = record_options__off_cpu(a, optarg ? optarg : RECORD_OFF_CPU_NS);
			break;
		case 'W':
			err = parse_delay(a, optarg);
			break;
		case 'S':
			err = record_options__schedule(a, optarg);
			break;
		case 'T':
			err = record_options__step(a, optarg);
			break;
		case 'X':
			err = record_options__capture(a, optarg);
			break;
		case 'E':
			a->capture_end = optarg;
			break;
		case 'U':
			a->session.start_paused = true;
			break;
		case 'A':
			a->session.no_args = true;
			break;
		case 'N':
			a->session.no_source = true;
			break;
		case 'L':
			err = record_options__cost_limit(a, optarg);
			break;
		case 'P':
			a->session.print = print_record;
			break;
		case 'q':
			a->quiet = true;
			status_line__disable();
			break;
		case 'R':
			a->report = true;
			break;
		case TABLE_OPTION_RULES:
			err = rule_files__add(optarg) ? 0 : -EINVAL;
			break;
		case 'I':
			a->inject = true;
			break;
		case 'Y':
			err = functions__add(&a->functions, optarg);
			break;
		case 'J':
			err = functions__add_file(&a->functions, optarg);
			break;
		case 'h':
			fputs(help, stdout);
			return 1;
		case ':':
			fprintf(stderr, "sonde record: option '%s' needs a value\n", argv[optind - 1]);
			return -EINVAL;
		default:
			err = scope__option(&a->scope, "record", c, optarg);
			if (err) {
				err = err < 0 ? err : 0;
				break;
			}
			if (optopt) {
				fprintf(stderr, "sonde record: unknown option '-%c'; see `sonde record --help`\n",
					optopt);
				return -EINVAL;
			}
			err = record_options__of_family(a, argv[optind - 1], argv[optind]);
			if (err > 0) {
				optind++;
				err = 0;
			}
		}
	}
	a->session.n_pids = a->pids.n;
	if (!err && (a->session.schedule || a->session.step))
		err = record_options__add_family(a, "torch");
	if (!err && a->session.schedule && (a->session.start_paused || a->delay_signal || a->delay > 0)) {
		fprintf(stderr, "sonde record: --schedule can't be combined with --delay or --start-paused\n");
		err = -EINVAL;
	}
	if (!err)
		err = record_options__finish_capture(a);
	if (!err)
		err = parse_command(a, argc, argv);
	if (!err)
		err = check_functions(a);
	if (!err)
		err = check_inject(a);
	if (!err)
		err = record_options__torch(a);
	if (!err)
		err = record_options__add_default_sampling(a);
	record_options__default_cost_limit(a);
	a->session.pids = a->pids.list;
	a->session.comms = a->comms;
	a->session.cgroups = a->cgroups;
	a->session.options = a->options;
	return err;
}

/* Records with arg, a struct record_args. Returns the exit status. */
static int record(void *arg)
{
	struct record_args *a = arg;
	struct printer printer = {};
	int ret;

	if (!scope__apply(&a->scope, &a->session, "record", a->launch.argv))
		return a->has_command ? EXIT_OWN_FAILURE : EXIT_USAGE;
	a->session.print_arg = &printer;
	ret = record__run(a);
	names__free(printer.names);
	if (a->session.print && (fflush(stdout) || ferror(stdout))) {
		cmd__error("cannot print the events: %s; they are in the trace",
			   errno ? strerror(errno) : "write error");
		ret = ret == EXIT_DONE || ret == EXIT_PARTLY ? EXIT_FAILED : ret;
	}
	return ret;
}

static int cmd_record(int argc, char **argv)
{
	static struct record_args a;
	char command[1024];
	int ret;

	for (int i = 1; i < argc; i++)
		a.has_command |= !strcmp(argv[i], "--");
	command_line(argc, argv, command, sizeof(command));
	ret = parse(&a, argc, argv);
	if (!ret && a.report && (a.session.print || (a.output && output__is_stdout(a.output)))) {
		cmd__usage("record", "--report prints to standard output, and so does %s",
			   a.session.print ? "--print" : "-o /dev/stdout");
		ret = -EINVAL;
	}
	a.session.command = a.session.no_args ? "(kept out: --no-args)" : command;
	if (!ret)
		rule_files__add_folder();
	if (ret)
		ret = ret > 0 ? EXIT_DONE : a.has_command ? EXIT_OWN_FAILURE : EXIT_USAGE;
	else
		ret = a.report ? record_report__run(&a, record) : record(&a);
	record_options__free(&a);
	return ret;
}

COMMAND(record_command) = {
	.name = "record",
	.doc = "trace the machine, or what the filters name, into a file",
	.order = 10,
	.names_refused = true,
	.run = cmd_record,
};
