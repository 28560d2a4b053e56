// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/cmd.h"
#include "cmd/launch.h"
#include "cmd/output.h"
#include "core/maps.h"
#include "model/line.h"
#include "record/session.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
	"Usage: sonde record [-o FILE] [-f] [-t [+]FAMILY,..] [-p PID,..] [--comm NAME,..] [--cgroup PATH]\n"
	"                    [--delay SECONDS|signal] [-d SECONDS] [--no-args] [--FAMILY=WORD] [--print]\n"
	"                    [-- CMD ARGS]\n"
	"\n"
	"Attaches to everything that runs on this machine, or to what the filters name, and writes a trace\n"
	"until Ctrl-C (a second one quits at once), until the time is up, every -p process has ended or\n"
	"CMD has. Nothing is restarted or changed. Needs root.\n"
	"\n"
	"  -o, --output FILE     where to write (sonde-DATE-TIME.sonde), mode 0600\n"
	"  -f, --force           overwrite FILE\n"
	"  -t, --trace FAMILIES  what to trace: A,B replaces the default set, +A,+B adds to it\n"
	"                        (`sonde list families`)\n"
	"  -p, --pid PIDS        only these processes, their descendants now and later ones\n"
	"      --comm NAMES      only processes of these names as /proc/PID/comm has them, while they have\n"
	"                        them; shell patterns (*, ?, [a-z]) of at most 15 characters\n"
	"      --cgroup PATH     only processes in this cgroup and below it, while they are; a directory of\n"
	"                        a cgroup file system, or a path below the cgroup v2 mount; repeatable\n"
	"                        (of several kinds of filters a process must pass each)\n"
	"      --delay SEC       begin after this many seconds; `signal`: when SIGUSR1 comes.\n"
	"                        Until then there are no probes\n"
	"  -d, --duration SEC    stop after this many seconds of tracing, fractions allowed\n"
	"      --no-args         keep command lines out of the trace, and of paths all but the file's name\n"
	"      --FAMILY=WORD     a switch of a family, such as --cuda=all or --sched=all\n"
	"                        (`sonde list families`)\n"
	"      --print           also print each event as it comes, a line each\n"
	"  -h, --help            this text\n"
	"  -- CMD ARGS           runs CMD and traces it, and what it starts, from its first instruction to\n"
	"                        its end; signals to sonde are passed on to it. -d ends the tracing, not CMD\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage, 3 done but something asked for could not be attached.\n"
	"With CMD its own (128+N: ended by signal N); 125 sonde failed, 126 CMD can't be run, 127 not found.\n"
	"\n"
	"Examples:\n"
	"  sonde record -d 10                     ten seconds of everything, then `sonde report FILE`\n"
	"  sonde record -p 4711 -t +sched         one process and its children, with the scheduler\n"
	"  sonde record -t cuda --cuda=all --print -d 2\n"
	"  sonde record --comm 'python*' --cgroup /system.slice/train.service -d 10\n"
	"  sonde record -o run.sonde -- python3 train.py --epochs 1\n";

struct record_args {
	struct session_args session;
	const char *output;
	bool force;
	double duration; /* seconds, 0: until stopped */
	double delay; /* seconds before it begins */
	bool delay_signal; /* it begins with SIGUSR1 */
	bool has_command; /* "--" was given: failures of sonde's own have a status of their own */
	struct launch launch;
	u32 pids[256];
	const char *comms[COMM_GLOBS + 1]; /* one too many is told of by the session */
	const char *cgroups[FILTER_CGROUPS + 1];
	const char *options[64];
	u32 n_options;
};

static volatile sig_atomic_t stops, begins, signals[65];
static bool with_command;

/* --print: a line an event; what the trace says about itself is in `sonde info`. */
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

/* The words of sonde's own command line, for the trace. */
static void command_line(int argc, char **argv, char *buf, size_t len)
{
	size_t used = 0;

	for (int i = 0; i < argc && used < len; i++)
		used += snprintf(buf + used, len - used, "%s%s", i ? " " : "", argv[i]);
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	if (sig == SIGUSR1 && !begins) {
		begins = 1;
		return;
	}
	if (with_command) {
		/* what a terminal sends has reached the command too, which shares its process group */
		if (info->si_code != SI_KERNEL)
			signals[sig] = 1;
		/* the command may take its time to end, or not want to */
		if (sig != SIGINT)
			return;
	}
	/* the second one: leave at once; the kernel takes the probes off, the trace ends at its last chunk */
	if (sig != SIGUSR1 && sig != SIGUSR2 && stops++)
		_exit(128 + sig);
}

static void handle_signals(const struct record_args *a)
{
	static const int handled[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	with_command = a->launch.argv;
	begins = !a->delay_signal;
	for (u32 i = 0; i < sizeof(handled) / sizeof(handled[0]); i++) {
		/* SIGQUIT and SIGUSR2 mean nothing to sonde itself */
		if ((handled[i] != SIGQUIT && handled[i] != SIGUSR2) || with_command)
			sigaction(handled[i], &sa, NULL);
	}
}

/* To the command, which has a signal of its own choice to stop. */
static void pass_signals(struct record_args *a)
{
	for (int sig = 1; sig < 65; sig++) {
		if (!signals[sig])
			continue;
		signals[sig] = 0;
		launch__signal(&a->launch, sig);
	}
}

static int parse_pids(struct record_args *a, const char *list)
{
	char *end;

	if (!*list) {
		fprintf(stderr, "sonde record: -p names no process; without -p the whole machine is traced\n");
		return -EINVAL;
	}
	while (*list) {
		unsigned long pid = strtoul(list, &end, 10);

		if (end == list || pid == 0 || pid > 0x7fffffff || (*end && *end != ',')) {
			fprintf(stderr, "sonde record: -p wants process ids separated by commas, not '%s'\n", list);
			return -EINVAL;
		}
		if (a->session.n_pids == sizeof(a->pids) / sizeof(a->pids[0])) {
			fprintf(stderr, "sonde record: at most %zu processes with -p\n",
				sizeof(a->pids) / sizeof(a->pids[0]));
			return -EINVAL;
		}
		a->pids[a->session.n_pids++] = pid;
		list = *end ? end + 1 : end;
	}
	return 0;
}

/* --comm A,B: cuts the word at its commas. */
static int add_words(const char **list, u32 *n, u32 max, char *words)
{
	char *save, *word = strtok_r(words, ",", &save);

	if (!word)
		return -EINVAL;
	for (; word && *n < max; word = strtok_r(NULL, ",", &save))
		list[(*n)++] = word;
	return 0;
}

static int parse_comms(struct record_args *a, char *words)
{
	if (!add_words(a->comms, &a->session.n_comms, COMM_GLOBS + 1, words))
		return 0;
	fprintf(stderr, "sonde record: --comm names no process; without it all names are traced\n");
	return -EINVAL;
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
	if (end == arg || *end || !(*out > 0) || *out > 1e9) {
		fprintf(stderr, "sonde record: %s wants seconds, more than 0, not '%s'\n", option, arg);
		return -EINVAL;
	}
	return 0;
}

static int parse_delay(struct record_args *a, const char *arg)
{
	a->delay_signal = !strcmp(arg, "signal");
	return a->delay_signal ? 0 : parse_seconds("--delay", arg, &a->delay);
}

/* --FAMILY=WORD: which there are is known only once the BPF object is open. */
static int parse_family_option(struct record_args *a, const char *arg)
{
	if (!arg || strncmp(arg, "--", 2) || !strchr(arg, '=') ||
	    a->n_options + 1 >= sizeof(a->options) / sizeof(a->options[0])) {
		fprintf(stderr, "sonde record: unknown option '%s'; see `sonde record --help`\n", arg ? arg : "");
		return -EINVAL;
	}
	a->options[a->n_options++] = arg + 2;
	return 0;
}

/* What stands behind "--". */
static int parse_command(struct record_args *a, int argc, char **argv)
{
	if (optind && !strcmp(argv[optind - 1], "--")) {
		if (optind < argc) {
			a->launch.argv = argv + optind;
			return 0;
		}
		fprintf(stderr, "sonde record: -- wants a command behind it\n");
		return -EINVAL;
	}
	if (optind == argc)
		return 0;
	fprintf(stderr, "sonde record: unexpected argument '%s'; a command to be traced stands behind --\n",
		argv[optind]);
	return -EINVAL;
}

/* 0: go on; 1: done (help); negative: wrong usage */
static int parse(struct record_args *a, int argc, char **argv)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },   { "force", no_argument, NULL, 'f' },
		{ "trace", required_argument, NULL, 't' },    { "pid", required_argument, NULL, 'p' },
		{ "duration", required_argument, NULL, 'd' }, { "print", no_argument, NULL, 'P' },
		{ "comm", required_argument, NULL, 'C' },     { "cgroup", required_argument, NULL, 'G' },
		{ "delay", required_argument, NULL, 'D' },    { "no-args", no_argument, NULL, 'A' },
		{ "help", no_argument, NULL, 'h' },	      {},
	};
	int c, err = 0;

	opterr = 0;
	optind = 0;
	while (!err && (c = getopt_long(argc, argv, "+:o:ft:p:d:h", options, NULL)) != -1) {
		switch (c) {
		case 'o':
			a->output = optarg;
			break;
		case 'f':
			a->force = true;
			break;
		case 't':
			a->session.families = optarg;
			break;
		case 'p':
			err = parse_pids(a, optarg);
			break;
		case 'd':
			err = parse_seconds("-d", optarg, &a->duration);
			break;
		case 'C':
			err = parse_comms(a, optarg);
			break;
		case 'G':
			err = parse_cgroup(a, optarg);
			break;
		case 'D':
			err = parse_delay(a, optarg);
			break;
		case 'A':
			a->session.no_args = true;
			break;
		case 'P':
			a->session.print = print_record;
			break;
		case 'h':
			fputs(help, stdout);
			return 1;
		case ':':
			fprintf(stderr, "sonde record: option '%s' wants a value\n", argv[optind - 1]);
			return -EINVAL;
		default:
			if (optopt) {
				fprintf(stderr, "sonde record: unknown option '-%c'; see `sonde record --help`\n",
					optopt);
				return -EINVAL;
			}
			err = parse_family_option(a, argv[optind - 1]);
		}
	}
	if (!err)
		err = parse_command(a, argc, argv);
	a->session.pids = a->pids;
	a->session.comms = a->comms;
	a->session.cgroups = a->cgroups;
	a->session.options = a->options;
	return err;
}

static void print_warnings(struct session *s)
{
	char *w;

	while ((w = session__next_warning(s))) {
		cmd__error("%s", w);
		free(w);
	}
}

static void progress(struct session *s, bool last)
{
	struct session_status st;

	if (!isatty(STDERR_FILENO))
		return;
	session__status(s, &st);
	fprintf(stderr, "\r\033[Ktracing %.0f s: %llu events, %.1f MB, %llu lost; Ctrl-C stops%s", st.wall_ns / 1e9,
		st.events, st.bytes / 1e6, st.lost, last ? "\n" : "");
}

static u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static int run(struct session *s, struct record_args *a, enum end_reason *reason, char *err, size_t len)
{
	u64 start = now_ns(), end = start + (u64)(a->duration * 1e9), next = start + 1000000000ULL;
	int ret = 0;

	*reason = END_SIGNAL;
	/* with a command, Ctrl-C is for that to end by */
	while (!ret && (!stops || a->launch.pid)) {
		u64 now = now_ns();
		int timeout = 100;

		if (a->duration > 0 && now >= end) {
			*reason = END_DURATION;
			break;
		}
		if (a->duration > 0 && end - now < 100000000ULL)
			timeout = (end - now) / 1000000 + 1;
		ret = session__poll(s, timeout, err, len);
		print_warnings(s);
		pass_signals(a);
		if (a->launch.pid && launch__ended(&a->launch, false)) {
			*reason = END_COMMAND;
			break;
		}
		if (!a->launch.pid && session__targets_ended(s)) {
			*reason = END_TARGETS;
			break;
		}
		if (now >= next) {
			progress(s, false);
			next = now + 1000000000ULL;
		}
	}
	if (ret)
		*reason = END_ERROR;
	progress(s, true);
	return ret;
}

static void print_end(struct session *s, const char *path)
{
	struct session_status st;
	double wall;

	session__status(s, &st);
	wall = st.wall_ns ? st.wall_ns : 1;
	if (st.wants_objects && !st.objects)
		fprintf(stderr, "sonde: no process maps a library that the chosen families probe\n");
	if (!st.traced)
		fprintf(stderr, "sonde: nothing was recorded: what was asked for did not happen in this time\n");
	if (st.cut_off)
		fprintf(stderr, "sonde: %s: cut off after %.1f KB: what came later is lost\n", path, st.bytes / 1e3);
	else
		fprintf(stderr, "sonde: %s: %llu events in %.1f s, %.1f KB; %llu lost\n", path, st.events, wall / 1e9,
			st.bytes / 1e3, st.lost);
	fprintf(stderr, "sonde: cost: %llu probe hits, about %.2f%% of one CPU in the targets; sonde itself %.2f%%\n",
		st.hits, 100 * st.probes_ns / wall, 100 * st.cpu_ns / wall);
}

/* --delay: until the time has come, or there is nothing to wait for any more. */
static void wait_for_start(struct session *s, struct record_args *a)
{
	u64 end = now_ns() + (u64)(a->delay * 1e9), now;

	if (a->delay_signal)
		fprintf(stderr, "sonde: SIGUSR1 starts: kill -USR1 %d\n", getpid());
	else if (a->delay > 0)
		fprintf(stderr, "sonde: starts in %g s\n", a->delay);
	while (!stops && (a->delay_signal ? !begins : (now = now_ns()) < end)) {
		u64 ns = a->delay_signal || end - now > 50000000 ? 50000000 : end - now;

		nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
		pass_signals(a);
		if (a->launch.pid ? launch__ended(&a->launch, false) : session__targets_ended(s))
			break;
	}
	begins = 1;
}

/* Forks the command, which waits: its pid is one of the filter's. 0 or an exit status. */
static int fork_command(struct record_args *a)
{
	char err[512];
	int ret;

	if (!a->launch.argv)
		return 0;
	ret = launch__find(&a->launch, a->launch.argv, err, sizeof(err));
	if (ret) {
		cmd__error("%s", err);
		return ret;
	}
	if (a->session.n_pids == sizeof(a->pids) / sizeof(a->pids[0])) {
		cmd__error("at most %u processes with -p and a command", a->session.n_pids - 1);
		return EXIT_USAGE;
	}
	ret = launch__fork(&a->launch);
	if (ret) {
		cmd__error("cannot fork: %s", strerror(-ret));
		return EXIT_FAILED;
	}
	a->pids[a->session.n_pids++] = a->launch.pid;
	return 0;
}

/* Lets the command run, if it has not been. 0 or an exit status. */
static int run_command(struct record_args *a)
{
	char err[512];
	int ret;

	if (!a->launch.go)
		return 0;
	ret = launch__go(&a->launch, err, sizeof(err));
	if (ret)
		cmd__error("%s", err);
	return ret;
}

/* The recording is over, the command not: -d, or an error. */
static void wait_for_command(struct record_args *a)
{
	if (!a->launch.pid || launch__ended(&a->launch, false))
		return;
	fprintf(stderr, "sonde: %s (process %d) goes on untraced; waiting for its end\n", a->launch.argv[0],
		a->launch.pid);
	while (!launch__ended(&a->launch, false)) {
		pass_signals(a);
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	}
}

/* Up to where tracing runs. */
static int start(struct session *s, struct record_args *a, struct output *out, char *err, size_t len)
{
	bool ahead = a->launch.go;
	int ret;

	ret = session__create(s, out->fd, err, len);
	if (!ret)
		ret = output__publish(out, err, len);
	if (!ret && ahead)
		launch__map(&a->launch);
	if (!ret)
		ret = session__start(s, err, len);
	launch__unmap(&a->launch);
	print_warnings(s);
	if (!ret)
		fprintf(stderr, "sonde: tracing into %s%s\n", out->path,
			a->duration > 0 || a->launch.pid ? "" : "; Ctrl-C stops");
	return ret;
}

/* Traces until there is an end to it. status: the command's, where it could not be run. */
static int trace(struct session *s, struct record_args *a, struct output *out, int *status, char *err, size_t len)
{
	enum end_reason reason = END_COMMAND;
	int ret, stopped;

	handle_signals(a);
	if (a->delay > 0 || a->delay_signal) {
		*status = run_command(a);
		if (!*status)
			wait_for_start(s, a);
	}
	ret = *status ? 0 : start(s, a, out, err, len);
	if (ret || *status) {
		output__discard(out);
		return ret;
	}
	*status = run_command(a);
	if (!*status)
		ret = run(s, a, &reason, err, len);
	stopped = session__stop(s, reason, err, len);
	print_warnings(s);
	if (*status)
		output__discard(out);
	else
		print_end(s, out->path);
	return ret ? ret : stopped;
}

static int exit_status(const struct record_args *a, int ret, const struct session_status *st)
{
	if (ret && a->has_command)
		return EXIT_OWN_FAILURE;
	if (ret)
		return ret == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	if (a->launch.pid)
		return a->launch.status;
	return st->not_attached ? EXIT_PARTLY : EXIT_DONE;
}

static int record(struct record_args *a)
{
	struct output out = {};
	struct session *s = NULL;
	struct session_status st;
	char err[8192] = "";
	int ret, status = 0;

	ret = session__open(&s, &a->session, err, sizeof(err));
	if (!ret)
		ret = output__create(&out, a->output, a->force, err, sizeof(err));
	print_warnings(s);
	if (!ret)
		ret = trace(s, a, &out, &status, err, sizeof(err));
	if (*err && ret)
		cmd__error("%s", err);
	session__status(s, &st);
	session__free(s);
	output__close(&out);
	launch__abandon(&a->launch);
	if (!status)
		wait_for_command(a);
	return status ? status : exit_status(a, ret, &st);
}

static int cmd_record(int argc, char **argv)
{
	static struct record_args a;
	struct printer printer = {};
	char command[1024];
	int ret;

	for (int i = 1; i < argc; i++)
		a.has_command |= !strcmp(argv[i], "--");
	command_line(argc, argv, command, sizeof(command));
	ret = parse(&a, argc, argv);
	if (ret)
		return ret > 0 ? EXIT_DONE : a.has_command ? EXIT_OWN_FAILURE : EXIT_USAGE;
	a.session.command = a.session.no_args ? "(kept out: --no-args)" : command;
	a.session.print_arg = &printer;
	ret = fork_command(&a);
	if (ret)
		return ret == EXIT_FAILED || ret == EXIT_USAGE ? EXIT_OWN_FAILURE : ret;
	ret = record(&a);
	names__free(printer.names);
	return ret;
}

COMMAND(record_command) = {
	.name = "record",
	.doc = "trace the machine, or what the filters name, into a file",
	.order = 10,
	.run = cmd_record,
};
