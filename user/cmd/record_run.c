// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A recording from start to end: signals, waiting for the start, the command, what is said about it. */
#include "cmd/cmd.h"
#include "cmd/record.h"
#include "cmd/shim.h"
#include "model/losses.h"
#include "output/file.h"
#include "output/text.h"
#include "util/array.h"
#include "util/timing.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stops, begins, signals[65];
static bool with_command;

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
	/* the second signal: exit at once; the kernel removes the probes, and the trace ends at its last chunk */
	if (sig != SIGUSR1 && sig != SIGUSR2 && stops++)
		_exit(128 + sig);
}

bool record__is_stopped(void)
{
	return stops;
}

static void handle_signals(const struct record_args *a)
{
	static const int handled[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO }, before;

	with_command = a->launch.argv;
	begins = !a->delay_signal;
	for (u32 i = 0; i < ARRAY_LEN(handled); i++) {
		/* nohup's wish */
		if (handled[i] == SIGHUP && !sigaction(SIGHUP, NULL, &before) && before.sa_handler == SIG_IGN)
			continue;
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

static void print_warnings(struct session *s)
{
	char *w;

	while ((w = session__next_warning(s))) {
		cmd__error("%s", w);
		free(w);
	}
}

static void progress(struct session *s)
{
	struct session_status st;

	if (!isatty(STDERR_FILENO))
		return;
	session__status(s, &st);
	fprintf(stderr, "\r\033[Ktracing %.0f s: %llu events, %.1f MB, %llu lost; Ctrl-C stops", st.live_ns / 1e9,
		st.events, st.bytes / 1e6, st.lost);
}

/* What happens before tracing runs, in one line that the next one takes the place of; "": none any more. */
static void starting(const char *what)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s", what);
}

static int run(struct session *s, struct record_args *a, enum end_reason *reason, char *err, size_t len)
{
	struct session_status st;
	u64 start, end, next;
	int ret = 0;

	/* -d counts from when tracing was live, as reports do */
	session__status(s, &st);
	start = timing__now() - st.live_ns;
	end = start + (u64)(a->duration * 1e9);
	next = start + 1000000000ULL;
	*reason = END_SIGNAL;
	/* with a command, Ctrl-C is for that to end by */
	while (!ret && (!stops || a->launch.pid)) {
		u64 now = timing__now();
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
			progress(s);
			next = now + 1000000000ULL;
		}
	}
	if (ret)
		*reason = END_ERROR;
	starting("");
	return ret;
}

/* Why there are no events. gone: the targets had ended before tracing ran. */
static const char *why_nothing(enum end_reason reason, bool gone)
{
	if (reason != END_TARGETS)
		return "no selected process had an event of the chosen families";
	return gone ? "every process of -p ended before tracing ran" :
		      "every process of -p ended without an event of the chosen families";
}

struct loss_list {
	struct loss *list;
	u32 n;
};

static void take_loss(const struct session_loss *l, void *arg)
{
	struct loss_list *losses = arg;

	losses__add_to(&losses->list, &losses->n,
		       &(struct loss){
			       .family = l->family,
			       .object = l->object,
			       .reason = l->reason,
			       .count = l->count,
			       .first = l->first,
			       .last = l->last,
			       .recorded = l->recorded,
			       .family_name = l->family_name,
			       .path = l->path,
			       .outside = l->outside,
		       });
}

/* The same lines as below each report of the trace. */
static void print_losses(struct session *s)
{
	struct session_times times = session__times(s);
	struct loss_times t = { times.start, times.live, times.stop };
	struct loss_list losses = {};
	char text[8192];

	session__each_loss(s, take_loss, &losses);
	for (u32 i = 0; i < losses.n; i++)
		if (*losses__line(text, sizeof(text), losses.list, losses.n, i, &t))
			cmd__error("lost %s", text);
	losses__outside_text(text, sizeof(text), losses.list, losses.n);
	if (*text)
		cmd__error("%s", text);
	losses__verdict(text, sizeof(text), losses.list, losses.n, &t);
	if (*text)
		cmd__error("%s", text);
	free(losses.list);
}

/* Of one CPU; of a figure that is rounded to nothing its bound. */
static char *cost_percent(char *buf, size_t size, double percent)
{
	if (percent > 0 && percent < 0.01)
		snprintf(buf, size, "less than 0.01%%");
	else
		snprintf(buf, size, "%.2f%%", percent);
	return buf;
}

static void print_cost(const struct session_status *st, double wall)
{
	char hits[TEXT_NUMBER], skipped[TEXT_NUMBER], others[128] = "", cost[32], own[32], range[64];

	/* probes are in files: other processes that map them run into them too */
	if (st->skipped_hits)
		snprintf(others, sizeof(others),
			 " (%s not recorded: of processes that are not traced, or within another call)",
			 text__count(skipped, sizeof(skipped), st->skipped_hits));
	fprintf(stderr, "sonde: cost: %s probe hits%s took about %s of one CPU; sonde itself took %s\n",
		text__count(hits, sizeof(hits), st->hits), others,
		cost_percent(cost, sizeof(cost), 100 * st->probes_ns / wall),
		cost_percent(own, sizeof(own), 100 * st->cpu_ns / wall));
	if (!st->at_tracepoints)
		return;
	if (100 * 1500 * st->at_tracepoints / wall < 0.01)
		snprintf(range, sizeof(range), "less than 0.01%%");
	else
		snprintf(range, sizeof(range), "%.2f%% to %.2f%%", 100 * 300 * st->at_tracepoints / wall,
			 100 * 1500 * st->at_tracepoints / wall);
	fprintf(stderr,
		"sonde: cost: %s events of kernel tracepoints, some 0.3 to 1.5 us each, took about %s of one CPU; "
		"`sonde doctor` measures a hit\n",
		text__count(hits, sizeof(hits), st->at_tracepoints), range);
}

static void print_end(struct session *s, const char *path, enum end_reason reason, bool gone)
{
	struct session_status st;
	char traced[TEXT_NUMBER];
	double wall;

	session__status(s, &st);
	wall = st.wall_ns ? st.wall_ns : 1;
	if (st.wants_objects && !st.objects)
		fprintf(stderr, "sonde: no process maps a library that the chosen families probe\n");
	if (!st.traced)
		fprintf(stderr, "sonde: nothing was recorded: %s\n", why_nothing(reason, gone));
	if (st.cut_off)
		fprintf(stderr, "sonde: %s: cut off after %.1f KB: what came later is lost\n", path, st.bytes / 1e3);
	else
		fprintf(stderr, "sonde: %s: %llu events in %s, %.1f KB; %llu lost%s\n", path, st.events,
			text__ns(traced, sizeof(traced), st.live_ns), st.bytes / 1e3, st.lost,
			st.traced ? "" : "; the events are those about the recording itself");
	print_losses(s);
	print_cost(&st, wall);
}

/* --delay: has the time come? */
static bool may_start(const struct record_args *a, u64 end)
{
	return a->delay_signal ? begins : timing__now() >= end;
}

/* Until then. false: there is nothing to wait for any more. */
static bool wait_for_start(struct session *s, struct record_args *a)
{
	u64 end = timing__now() + (u64)(a->delay * 1e9);

	if (a->delay_signal)
		fprintf(stderr, "sonde: SIGUSR1 starts: kill -USR1 %d\n", getpid());
	else
		fprintf(stderr, "sonde: starts in %g s\n", a->delay);
	while (!stops && !may_start(a, end)) {
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		pass_signals(a);
		if (a->launch.pid ? launch__ended(&a->launch, false) : session__targets_ended(s))
			return false;
	}
	begins = 1;
	return !stops || a->launch.pid;
}

/* Family gpu needs a library in the command, which CUDA loads. */
static void choose_shim(struct record_args *a)
{
	const char *other = getenv("CUDA_INJECTION64_PATH");

	if (!shim__is_needed(a->session.families))
		return;
	if (other && *other)
		cmd__error("CUDA_INJECTION64_PATH is set already, to %s: there will be no device times", other);
	else if (shim__find(a->launch.shim, sizeof(a->launch.shim)))
		cmd__error(
			"libsonde-cupti.so is neither beside sonde nor in ../lib/sonde: there will be no device times");
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
	if (a->pids.n == PIDS_MAX) {
		cmd__error("at most %u processes with -p and a command", PIDS_MAX - 1);
		return EXIT_USAGE;
	}
	choose_shim(a);
	ret = launch__fork(&a->launch);
	if (ret) {
		cmd__error("cannot fork: %s", strerror(-ret));
		return EXIT_FAILED;
	}
	a->pids.list[a->pids.n++] = a->launch.pid;
	a->session.n_pids = a->pids.n;
	a->session.command_pid = a->launch.pid;
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
	if (!ret) {
		/* the last moment at which this process may */
		record_inject__run(a);
		starting("attaching to what runs ...");
		ret = session__start(s, err, len);
	}
	starting("");
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
	bool gone;

	handle_signals(a);
	if (a->delay > 0 || a->delay_signal) {
		*status = run_command(a);
		if (!*status && !wait_for_start(s, a)) {
			fprintf(stderr, "sonde: ended before it began: nothing was recorded\n");
			ret = session__create(s, out->fd, err, len);
			if (!ret)
				ret = output__publish(out, err, len);
			return ret ? ret : session__stop(s, END_SIGNAL, err, len);
		}
	}
	ret = *status ? 0 : start(s, a, out, err, len);
	if (ret || *status) {
		output__discard(out);
		return ret;
	}
	gone = !a->launch.pid && session__targets_ended(s);
	*status = run_command(a);
	if (!*status)
		ret = run(s, a, &reason, err, len);
	stopped = session__stop(s, reason, err, len);
	if (!ret && !stopped)
		stopped = output__check(out, err, len);
	print_warnings(s);
	if (*status)
		output__discard(out);
	else
		print_end(s, out->path, reason, gone);
	return ret ? ret : stopped;
}

static int exit_status(const struct record_args *a, int ret, bool usage, const struct session_status *st)
{
	if (ret && a->has_command)
		return EXIT_OWN_FAILURE;
	if (ret)
		return usage ? EXIT_USAGE : EXIT_FAILED;
	if (a->launch.pid)
		return a->launch.status;
	return st->not_attached || a->not_injected ? EXIT_PARTLY : EXIT_DONE;
}

static int record(struct record_args *a)
{
	struct output out = {};
	struct session *s = NULL;
	struct session_status st;
	char err[8192] = "";
	int ret, status = 0;
	bool usage = false; /* an -EINVAL of the kernel's later is none */

	a->session.stop = &stops;
	starting("loading programs into the kernel ...");
	ret = session__open(&s, &a->session, err, sizeof(err));
	starting("");
	a->launch.session = s;
	if (!ret)
		ret = output__create(&out, a->output, a->force, err, sizeof(err));
	print_warnings(s);
	if (!ret)
		ret = trace(s, a, &out, &status, err, sizeof(err));
	else if (ret == -EINVAL)
		usage = true;
	if (*err && ret)
		cmd__error("%s", err);
	session__status(s, &st);
	output__close(&out);
	launch__abandon(&a->launch);
	if (!status)
		wait_for_command(a);
	session__free(s);
	return status ? status : exit_status(a, ret, usage, &st);
}

int record__run(struct record_args *a)
{
	int ret = fork_command(a);

	if (ret)
		return ret == EXIT_FAILED || ret == EXIT_USAGE ? EXIT_OWN_FAILURE : ret;
	return record(a);
}
