// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `sonde top` shows what Python does now: GIL load, holders, waiters, functions. It writes no trace. */
#include "cmd/cmd.h"
#include "cmd/pids.h"
#include "cmd/rule_files.h"
#include "cmd/scope.h"
#include "cmd/top.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "model/live.h"
#include "output/print.h"
#include "record/session.h"
#include "util/timing.h"

#define LINES_EACH 10 /* lines of each kind in an update, without a terminal */
#define FIRST_NS   100000000 /* on a terminal the first figures come after this, if the interval is longer */

static const char help[] =
	"Usage: sonde top [PID..] [-F HZ] [--scope user|all] [--trusted-files] [--remote-files]\n"
	"                 [--interval S] [--count N] [--plain]\n"
	"\n"
	"Shows once a second what Python processes do, all on the machine or only PID and its descendants:\n"
	"for how much of the time threads waited for each interpreter's GIL, which code held it, and\n"
	"the functions that take the CPU time. Nothing is stopped or changed, and no trace is written: for\n"
	"a trace use `sonde record`. Needs root.\n"
	"\n"
	"On a terminal the first figures are of the first 0.1 s, and the line at the top shows the time that\n"
	"the figures cover; --count does not count these first ones.\n"
	"q quits, p pauses the screen, s sorts functions by self or total time,\n"
	"? shows help. Without a terminal, or with --plain, it prints lines each second: the time, then\n"
	"  finding TEXT        what cost most time, in the words of `sonde report`; the screen's first line\n"
	"  gil PID NUMBER LOAD% WAITS WAITED_NS THREADS NAME\n"
	"  blame PID SHARE% WAITS WAITED_NS HOLDER -> WAITER\n"
	"  cpu SELF% TOTAL% SELF_NS FUNCTION\n"
	"  end LOST\n"
	"\n"
	"  -p, --pid PIDS      the same as PID..\n"
	"  -F, --frequency HZ  sample running threads this many times a second on each CPU (49; 0: not at all)\n"
	"      --scope SCOPE   user: only the caller's processes, also by sudo; all: of all users (root's default)\n"
	"      --trusted-files probe only files that belong to root or to the user of a process that\n"
	"                      maps them (=no: all files)\n"
	"      --remote-files  examine libraries on network and FUSE file systems too, whose server may not answer\n"
	"      --interval S    seconds between two updates (1), fractions allowed\n"
	"      --count N       end after N updates\n"
	"      --plain         print lines, also on a terminal\n"
	"  -h, --help          this text\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage, 3 done but something could not be attached.\n"
	"\n"
	"Examples:\n"
	"  sudo sonde top                          all Python processes of this machine\n"
	"  sudo sonde top 4711 -F 199\n"
	"  sudo sonde top $(pgrep -f gunicorn) --plain --count 10 | grep ^blame\n";

struct top {
	struct session_args session;
	struct pid_list pids;
	struct scope scope;
	const char *options[2];
	char hz_option[32];
	u64 hz, count; /* number of updates, 0: until stopped */
	double interval; /* s */
	bool is_plain;
	bool has_figures; /* the first interval has ended */
	struct live *live;
	int error; /* returned by live__feed */
	struct top_view view;
	char message[256];
};

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	stopped = 1;
}

static void on_record(const struct schema *schema, const void *record, u32 size, void *arg)
{
	struct top *t = arg;

	if (!t->live && !t->error)
		t->error = live__new(&t->live, schema);
	if (!t->error)
		t->error = live__feed(t->live, record, size);
}

static bool parse_seconds(const char *value, double *out)
{
	char *end;

	*out = strtod(value, &end);
	return end != value && !*end && *out >= 0.05 && *out <= 3600;
}

/* Returns -1 to continue, or the exit status. */
static int parse_options(struct top *t, int argc, char **argv)
{
	static const struct option options[] = {
		{ "frequency", required_argument, NULL, 'F' },
		{ "pid", required_argument, NULL, 'p' },
		{ "interval", required_argument, NULL, 'i' },
		{ "count", required_argument, NULL, 'n' },
		{ "plain", no_argument, NULL, 'P' },
		SCOPE_OPTIONS,
		{ "help", no_argument, NULL, 'h' },
		{},
	};
	int c, taken;

	opterr = 0;
	optind = 0;
	while ((c = getopt_long(argc, argv, ":F:p:h", options, NULL)) != -1) {
		switch (c) {
		case 'p':
			if (!pid_list__add(&t->pids, "top", "-p", optarg))
				return EXIT_USAGE;
			break;
		case 'F':
			if (!cmd__parse_number("top", "-F", optarg, 0, 10000, &t->hz))
				return EXIT_USAGE;
			break;
		case 'n':
			if (!cmd__parse_number("top", "--count", optarg, 1, 1000000000, &t->count))
				return EXIT_USAGE;
			break;
		case 'i':
			if (!parse_seconds(optarg, &t->interval))
				return cmd__usage("top", "--interval needs seconds from 0.05 to 3600, not '%s'",
						  optarg);
			break;
		case 'P':
			t->is_plain = true;
			break;
		case 'h':
			fputs(help, stdout);
			return EXIT_DONE;
		case ':':
			return cmd__usage("top", "option '%s' needs a value", argv[optind - 1]);
		default:
			taken = scope__option(&t->scope, "top", c, optarg);
			if (taken <= 0)
				return taken ? EXIT_USAGE : cmd__usage("top", "unknown option '%s'", argv[optind - 1]);
		}
	}
	return -1;
}

static int parse(struct top *t, int argc, char **argv)
{
	int status;

	t->hz = 49;
	t->interval = 1;
	status = parse_options(t, argc, argv);
	if (status >= 0)
		return status;
	for (; optind < argc; optind++)
		if (!pid_list__add(&t->pids, "top", "PID", argv[optind]))
			return EXIT_USAGE;
	t->session.pids = t->pids.list;
	t->session.n_pids = t->pids.n;
	if (!scope__apply(&t->scope, &t->session, "top", false))
		return EXIT_USAGE;
	rule_files__add_folder();
	t->session.families = t->hz ? "proc,gil,sample" : "proc,gil";
	snprintf(t->hz_option, sizeof(t->hz_option), "sample-hz=%llu", t->hz);
	t->options[0] = t->hz ? t->hz_option : NULL;
	t->session.options = t->options;
	t->session.command = "sonde top";
	t->session.print = on_record;
	t->session.no_source = true; /* it is only in traces */
	t->session.print_arg = t;
	t->is_plain = t->is_plain || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO);
	return -1;
}

static void print_lines(const struct top_view *v, const struct top_status *status)
{
	time_t now = time(NULL);
	char clock[16];
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	printf("%s %.2f s%s\n", clock, (double)(v->to - v->from) / 1e9,
	       v->sliced ? ", GIL waits estimated: they come too fast to be measured all the time" : "");
	if (*v->finding.text) {
		fputs("finding ", stdout);
		print__clean(stdout, v->finding.text);
		puts("");
	}
	for (u32 i = 0; i < v->n_gils && i < LINES_EACH; i++) {
		const struct top_gil *g = &v->gils[i];

		printf("gil %u %u %.1f%% %llu %llu %u ", g->pid, g->number, g->load_percent, g->waits, g->wait_ns,
		       g->threads);
		print__clean(stdout, g->name);
		puts("");
	}
	for (u32 i = 0; i < v->n_pairs && i < LINES_EACH; i++) {
		const struct gil_blamed *p = &v->pairs[i];

		printf("blame %u %.1f%% %llu %llu ", p->pid, p->share_percent, p->waits, p->wait_ns);
		print__clean(stdout, p->holder);
		fputs(" -> ", stdout);
		print__clean(stdout, p->waiter);
		puts("");
	}
	for (u32 i = 0; i < v->n_functions && i < LINES_EACH; i++) {
		const struct top_function *f = &v->functions[i];

		printf("cpu %.1f%% %.1f%% %llu ", f->self_percent, f->total_percent, f->self_ns);
		print__clean(stdout, f->name);
		puts("");
	}
	printf("end %llu\n", status->lost);
}

static void take_warnings(struct session *s, struct top *t, bool screen)
{
	char *w;

	while ((w = session__next_warning(s))) {
		snprintf(t->message, sizeof(t->message), "%s", w);
		if (!screen)
			cmd__error("%s", w);
		free(w);
	}
}

static struct top_status status_of(struct session *s, const struct top *t)
{
	struct session_status st;
	double wall;

	session__status(s, &st);
	wall = st.wall_ns ? (double)st.wall_ns : 1;
	return (struct top_status){
		.lost = st.lost + (t->live ? live__lost(t->live) : 0),
		.targets_percent = 100 * (double)st.probes_ns / wall,
		.own_percent = 100 * (double)st.cpu_ns / wall,
		.sampling = t->hz,
		.has_figures = t->has_figures,
		.message = t->message,
	};
}

/* Prints or draws one update. 0 or negative errno; -EPIPE: standard output was closed. */
static int update(struct session *s, struct top *t, bool screen, u64 now)
{
	const struct query *interval = NULL;
	struct top_status status;
	int err = t->live ? live__cut(t->live, now, 0, &interval) : 0;

	if (!err && interval)
		err = top_view__read(&t->view, interval);
	if (err)
		return err;
	t->has_figures = true;
	status = status_of(s, t);
	if (screen) {
		top_screen__draw(&t->view, &status);
		return 0;
	}
	print_lines(&t->view, &status);
	return fflush(stdout) || ferror(stdout) ? -EPIPE : 0;
}

static void redraw(struct session *s, struct top *t)
{
	struct top_status status = status_of(s, t);

	top_screen__draw(&t->view, &status);
}

/* Returns how many ms to wait for records: at most 100, since keys and the targets' ends are polled too. */
static int timeout(u64 now, u64 due)
{
	if (due <= now)
		return 0;
	return due - now < 100000000 ? (int)((due - now) / 1000000) + 1 : 100;
}

static int run(struct session *s, struct top *t, bool screen, char *err, size_t len)
{
	u64 step = (u64)(t->interval * 1e9), next, due, now = timing__now(), updates = 0;
	bool early = screen && step > FIRST_NS; /* an additional update, which is not counted */
	const struct query *none;
	int ret = t->live ? live__cut(t->live, now, 0, &none) : 0;

	next = now + step;
	due = early ? now + FIRST_NS : next;
	if (!ret && screen)
		redraw(s, t);
	while (!ret && !stopped) {
		enum top_key key = screen ? top_screen__key() : TOP_NOTHING;

		/* all records up to this moment arrive in the poll */
		now = timing__now();
		ret = session__poll(s, timeout(now, due), err, len);
		take_warnings(s, t, screen);
		if (!ret && (ret = t->error))
			snprintf(err, len, "out of memory");
		if (key == TOP_QUIT || session__targets_ended(s))
			break;
		if (!ret && now >= due && !(screen && top_screen__paused())) {
			ret = update(s, t, screen, now);
			if (!early && t->count && ++updates == t->count)
				break;
			if (!early)
				next = now - next < step ? next + step : now + step;
			early = false;
			due = next;
		} else if (!ret && key == TOP_REDRAW) {
			redraw(s, t);
		}
	}
	return ret == -EPIPE ? 0 : ret;
}

static int top(struct top *t)
{
	struct session_status st = {};
	struct session *s = NULL;
	char err[8192] = "";
	bool screen = false, usage;
	int ret;

	top_view__init(&t->view);
	if (isatty(STDERR_FILENO))
		fputs("loading programs into the kernel ...", stderr);
	t->session.stop = &stopped;
	ret = session__open(&s, &t->session, err, sizeof(err));
	usage = ret == -EINVAL;
	if (!ret)
		ret = session__create(s, -1, err, sizeof(err));
	if (!ret && !t->is_plain)
		top_screen__prepare();
	if (!ret)
		ret = session__start(s, err, sizeof(err));
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	if (!ret) {
		screen = !t->is_plain && top_screen__open();
		take_warnings(s, t, screen);
		ret = run(s, t, screen, err, sizeof(err));
		/* The screen is closed first, because stopping takes a moment and prints messages. */
		if (screen)
			top_screen__close();
		session__stop(s, ret ? END_ERROR : END_SIGNAL, err, ret ? 0 : sizeof(err));
		session__status(s, &st);
	}
	if (ret && s)
		take_warnings(s, t, false);
	if (ret && *err)
		cmd__error("%s", err);
	session__free(s);
	live__free(t->live);
	top_view__free(&t->view);
	if (ret)
		return usage ? EXIT_USAGE : EXIT_FAILED;
	return st.not_attached ? EXIT_PARTLY : EXIT_DONE;
}

static int cmd_top(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_signal };
	static struct top t;
	int status = parse(&t, argc, argv);

	if (status >= 0)
		return status;
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	return top(&t);
}

COMMAND(top_command) = {
	.name = "top",
	.doc = "show live which code waits for the GIL, which code holds it, and which functions run",
	.order = 15,
	.names_refused = true,
	.run = cmd_top,
};
