// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/cmd.h"
#include "cmd/output.h"
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
	"Usage: sonde record [-o FILE] [-f] [-t [+]FAMILY,..] [-p PID,..] [-d SECONDS] [--FAMILY=WORD] [--print]\n"
	"\n"
	"Attaches to everything that runs on this machine, or to what -p names, and writes a trace\n"
	"until Ctrl-C (a second one quits at once), until the time is up or every -p process has ended.\n"
	"Nothing is restarted or changed. Needs root.\n"
	"\n"
	"  -o, --output FILE     where to write (sonde-DATE-TIME.sonde), mode 0600\n"
	"  -f, --force           overwrite FILE\n"
	"  -t, --trace FAMILIES  what to trace: A,B replaces the default set, +A,+B adds to it\n"
	"                        (`sonde list families`)\n"
	"  -p, --pid PIDS        only these processes, their descendants now and later ones\n"
	"  -d, --duration SEC    stop after this many seconds, fractions allowed\n"
	"      --FAMILY=WORD     a switch of a family, such as --cuda=all or --sched=all\n"
	"                        (`sonde list families`)\n"
	"      --FAMILY-WORD N   a number of a family, such as --osrt-threshold 1000 (`sonde list options`)\n"
	"      --print           also print each event as it comes, a line each\n"
	"  -h, --help            this text\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage, 3 done but something asked for could not be attached.\n"
	"\n"
	"Examples:\n"
	"  sonde record -d 10                     ten seconds of everything, then `sonde report FILE`\n"
	"  sonde record -p 4711 -t +sched         one process and its children, with the scheduler\n"
	"  sonde record -t cuda --cuda=all --print -d 2\n";

struct record_args {
	struct session_args session;
	const char *output;
	bool force;
	double duration; /* seconds, 0: until stopped */
	u32 pids[256];
	const char *options[64];
	u32 n_options;
};

static volatile sig_atomic_t stops;

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

static void on_signal(int sig)
{
	/* the second one: leave at once; the kernel takes the probes off, the trace ends at its last chunk */
	if (stops++)
		_exit(128 + sig);
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

/*
 * --FAMILY=WORD, --FAMILY-WORD NUMBER: which there are is known only once the BPF object is open.
 * next is the word after it; returns 1 if that was its number.
 */
static int parse_family_option(struct record_args *a, const char *arg, const char *next)
{
	if (arg && !strncmp(arg, "--", 2) && strchr(arg + 2, '-') && !strchr(arg, '=') && next && *next >= '0' &&
	    *next <= '9' && a->n_options + 1 < sizeof(a->options) / sizeof(a->options[0])) {
		char *option;

		/* kept to the end of the program, as the words of its command line are */
		if (asprintf(&option, "%s=%s", arg + 2, next) < 0)
			return -ENOMEM;
		a->options[a->n_options++] = option;
		return 1;
	}
	if (!arg || strncmp(arg, "--", 2) || !strchr(arg, '=') ||
	    a->n_options + 1 >= sizeof(a->options) / sizeof(a->options[0])) {
		fprintf(stderr, "sonde record: unknown option '%s'; see `sonde record --help`\n", arg ? arg : "");
		return -EINVAL;
	}
	a->options[a->n_options++] = arg + 2;
	return 0;
}

static int parse_duration(struct record_args *a, const char *arg)
{
	char *end;

	a->duration = strtod(arg, &end);
	if (end == arg || *end || !(a->duration > 0) || a->duration > 1e9) {
		fprintf(stderr, "sonde record: -d wants seconds, more than 0, not '%s'\n", arg);
		return -EINVAL;
	}
	return 0;
}

/* 0: go on; 1: done (help); negative: wrong usage */
static int parse(struct record_args *a, int argc, char **argv)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },   { "force", no_argument, NULL, 'f' },
		{ "trace", required_argument, NULL, 't' },    { "pid", required_argument, NULL, 'p' },
		{ "duration", required_argument, NULL, 'd' }, { "print", no_argument, NULL, 'P' },
		{ "help", no_argument, NULL, 'h' },	      {},
	};
	int c, err = 0;

	opterr = 0;
	optind = 0;
	while (!err && (c = getopt_long(argc, argv, ":o:ft:p:d:h", options, NULL)) != -1) {
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
			err = parse_duration(a, optarg);
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
			err = parse_family_option(a, argv[optind - 1], argv[optind]);
			if (err > 0) {
				optind++;
				err = 0;
			}
		}
	}
	if (!err && optind < argc) {
		fprintf(stderr, "sonde record: unexpected argument '%s'\n", argv[optind]);
		err = -EINVAL;
	}
	a->session.pids = a->pids;
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

static int run(struct session *s, const struct record_args *a, enum end_reason *reason, char *err, size_t len)
{
	u64 start = now_ns(), end = start + (u64)(a->duration * 1e9), next = start + 1000000000ULL;
	int ret = 0;

	*reason = END_SIGNAL;
	while (!ret && !stops) {
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
		if (session__targets_ended(s)) {
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

static int record(struct record_args *a)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct output out = {};
	struct session *s = NULL;
	enum end_reason reason;
	struct session_status st;
	char err[8192] = "";
	int ret, stopped;

	ret = session__open(&s, &a->session, err, sizeof(err));
	if (!ret)
		ret = output__create(&out, a->output, a->force, err, sizeof(err));
	if (ret) {
		print_warnings(s);
		goto out;
	}
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	ret = session__create(s, out.fd, err, sizeof(err));
	if (!ret)
		ret = output__publish(&out, err, sizeof(err));
	if (!ret)
		ret = session__start(s, err, sizeof(err));
	print_warnings(s);
	if (ret) {
		output__discard(&out);
		goto out;
	}
	fprintf(stderr, "sonde: tracing into %s%s\n", out.path, a->duration > 0 ? "" : "; Ctrl-C stops");
	ret = run(s, a, &reason, err, sizeof(err));
	stopped = session__stop(s, reason, err, sizeof(err));
	if (!ret)
		ret = stopped;
	print_warnings(s);
	print_end(s, out.path);
out:
	if (*err && ret)
		cmd__error("%s", err);
	session__status(s, &st);
	session__free(s);
	output__close(&out);
	if (ret)
		return ret == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	return st.not_attached ? EXIT_PARTLY : EXIT_DONE;
}

static int cmd_record(int argc, char **argv)
{
	struct record_args a = {};
	struct printer printer = {};
	int ret = parse(&a, argc, argv);
	char command[1024];

	if (ret)
		return ret > 0 ? EXIT_DONE : EXIT_USAGE;
	command_line(argc, argv, command, sizeof(command));
	a.session.command = command;
	a.session.print_arg = &printer;
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
