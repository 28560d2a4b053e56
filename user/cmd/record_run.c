// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Runs a recording from start to end: signals, the delayed start, the command, messages. */
#include "cmd/cmd.h"
#include "cmd/record.h"
#include "cmd/shim.h"
#include "cmd/status_line.h"
#include "cmd/subcommand.h"
#include "output/file.h"
#include "output/text.h"
#include "util/array.h"
#include "util/path.h"
#include "util/timing.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 * Set by signals: how many signals asked to stop, whether the recording may begin, whether it is paused, and which
 * signals are to be passed on to the command
 */
static volatile sig_atomic_t stops, begins, pauses, signals[65];
static bool with_command;
static bool takes_pauses; /* SIGUSR1 and SIGUSR2 are for sonde and not for the command */

static void on_signal(int sig, siginfo_t *info, void *context)
{
	if (subcommand__is_copy(sig, info))
		return;
	if (sig == SIGUSR1 && !begins) {
		begins = 1;
		return;
	}
	if (takes_pauses && (sig == SIGUSR1 || sig == SIGUSR2)) {
		pauses = sig == SIGUSR2;
		return;
	}
	if (with_command) {
		/* The terminal has sent its signals to the command too, which shares sonde's process group. */
		if (info->si_code != SI_KERNEL)
			signals[sig] = 1;
		/* A second Ctrl-C ends sonde even if the command does not end. */
		if (sig != SIGINT)
			return;
	}
	/* A second signal ends sonde at once: the kernel removes the probes, and the trace ends with its last chunk. */
	if (sig != SIGUSR1 && sig != SIGUSR2 && stops++)
		_exit(128 + sig);
}

bool record__is_stopped(void)
{
	return stops;
}

/* A script may send these signals while programs are still being loaded, and by default they would end sonde. */
static void handle_user_signals(const struct record_args *a)
{
	/* restarted are reads that would take an interruption for an answer; epoll_wait() returns in any case */
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };

	with_command = a->launch.argv;
	takes_pauses = !a->session.schedule && !a->session.capture && (!with_command || a->session.start_paused);
	pauses = a->session.start_paused;
	begins = !a->delay_signal;
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
}

static void handle_signals(void)
{
	static const int handled[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO }, before;

	for (u32 i = 0; i < ARRAY_LEN(handled); i++) {
		/* nohup has set SIGHUP to be ignored. */
		if (handled[i] == SIGHUP && !sigaction(SIGHUP, NULL, &before) && before.sa_handler == SIG_IGN)
			continue;
		/* sonde handles SIGQUIT only for the command. */
		if (handled[i] != SIGQUIT || with_command)
			sigaction(handled[i], &sa, NULL);
	}
}

/* Passes signals on to the command, which decides whether it ends. */
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
		status_line__set("%s", "");
		cmd__error("%s", w);
		free(w);
	}
}

static void progress(struct session *s, struct record_live *live, u64 now)
{
	struct session_status st;
	const char *finding;

	session__status(s, &st);
	finding = record_live__finding(live, now, st.unmeasured_ns);
	status_line__set("%s %.0f s: %llu events, %.1f MB, %llu lost; %s", st.is_paused ? "paused; traced" : "tracing",
			 (st.live_ns - st.paused_ns) / 1e9, st.events, st.bytes / 1e6, st.lost,
			 *finding && !st.is_paused ? finding : "Ctrl-C stops");
}

/* Callback of session__start(): shows which file gets its probes. */
static void show_attaching(const char *path)
{
	const char *file = path__file_name(path);
	char *name = text__clean(file, strlen(file));

	if (name)
		status_line__set("probing %s ...", name);
	free(name);
}

static unsigned int count_processes(void)
{
	unsigned int n = 0;
	DIR *proc = opendir("/proc");
	struct dirent *e;

	while (proc && (e = readdir(proc)))
		n += e->d_name[0] >= '1' && e->d_name[0] <= '9';
	if (proc)
		closedir(proc);
	return n;
}

static int run(struct session *s, struct record_args *a, enum end_reason *reason, char *err, size_t len)
{
	struct session_status st;
	u64 start, end, next;
	int ret = 0, last = a->session.start_paused;

	/* -d counts from when tracing was live, as reports do. */
	session__status(s, &st);
	start = timing__now() - st.live_ns;
	end = start + a->session.duration;
	next = start;
	*reason = END_SIGNAL;
	/* With a command, Ctrl-C only ends that. The end of a parent (`record --report`, `why`) ends the recording. */
	while (!ret && (!stops || a->launch.pid) && !subcommand__is_orphan()) {
		u64 now = timing__now();
		int timeout = 100;

		if (a->session.duration && now >= end) {
			*reason = END_DURATION;
			break;
		}
		if (a->session.duration && end - now < 100000000ULL)
			timeout = (end - now) / 1000000 + 1;
		/* the line of this second covers the records until now */
		if (now >= next)
			timeout = 0;
		/* `sonde control` may have paused or resumed it since the last signal */
		if (takes_pauses && pauses != last) {
			last = pauses;
			session__set_paused(s, last);
		}
		ret = session__poll(s, timeout, err, len);
		print_warnings(s);
		pass_signals(a);
		if (a->launch.pid && launch__ended(&a->launch, false)) {
			*reason = END_COMMAND;
			break;
		}
		if (session__schedule_ended(s)) {
			*reason = END_SCHEDULE;
			break;
		}
		if (session__captures_ended(s)) {
			*reason = END_RANGES;
			break;
		}
		if (!a->launch.pid && session__targets_ended(s)) {
			*reason = END_TARGETS;
			break;
		}
		if (now >= next) {
			progress(s, a->live, now);
			next = now + 1000000000ULL;
		}
	}
	if (ret)
		*reason = END_ERROR;
	status_line__set("%s", "");
	return ret;
}

/* Is --delay over? */
static bool may_start(const struct record_args *a, u64 end)
{
	return a->delay_signal ? begins : timing__now() >= end;
}

/* Waits for the end of --delay; returns false if there is nothing left to record. */
static bool wait_for_start(struct session *s, struct record_args *a)
{
	u64 end = timing__now() + (u64)(a->delay * 1e9);

	if (a->delay_signal && !a->quiet)
		fprintf(stderr, "sonde: SIGUSR1 starts: kill -USR1 %d\n", getpid());
	else if (!a->quiet)
		fprintf(stderr, "sonde: starts in %g s\n", a->delay);
	while (!stops && !may_start(a, end) && !subcommand__is_orphan()) {
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		pass_signals(a);
		if (a->launch.pid ? launch__ended(&a->launch, false) : session__targets_ended(s))
			return false;
	}
	begins = 1;
	return (!stops && !subcommand__is_orphan()) || a->launch.pid;
}

/* Finds libsonde-cupti.so, which is loaded into the command, as families gpu, nvtx and functions need it there. */
static void choose_shim(struct record_args *a)
{
	unsigned int needs = shim__check_environment(record_options__shim_needs(a));

	a->launch.shim_needs = needs;
	a->launch.functions = a->functions.text;
	if (needs && shim__find(a->launch.shim, sizeof(a->launch.shim)))
		cmd__error("libsonde-cupti.so is neither beside sonde nor in ../lib/sonde: there will be no %s",
			   shim__records(needs));
}

/* Forks the command, which waits, and adds its pid to the filter. Returns 0 or an exit status. */
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

/* Lets the command run unless it runs already. Returns 0 or an exit status. */
static int run_command(struct record_args *a)
{
	char err[512];
	int ret;

	if (!a->launch.start_pipe)
		return 0;
	ret = launch__go(&a->launch, err, sizeof(err));
	if (ret)
		cmd__error("%s", err);
	return ret;
}

/* Waits for a command that outlives the recording because of -d or an error. */
static void wait_for_command(struct record_args *a)
{
	if (!a->launch.pid || launch__ended(&a->launch, false))
		return;
	if (!a->quiet)
		fprintf(stderr, "sonde: %s (process %d) continues untraced; waiting for its end\n", a->launch.argv[0],
			a->launch.pid);
	while (!launch__ended(&a->launch, false)) {
		pass_signals(a);
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	}
}

static void print_armed(const struct capture_range *c)
{
	if (!c->is_nvtx)
		fprintf(stderr,
			"sonde: waits for cudaProfilerStart of a selected process; until then nothing is recorded\n");
	else
		fprintf(stderr,
			"sonde: waits for a range '%s' in %s%s%s of a selected process; until then nothing is recorded\n",
			c->name, *c->domain ? "domain '" : "the default domain", c->domain, *c->domain ? "'" : "");
}

/* Prepares and starts tracing. */
static int start(struct session *s, struct record_args *a, struct output *out, char *err, size_t len)
{
	bool preattach = a->launch.start_pipe;
	int ret;

	ret = session__create(s, out->fd, err, len);
	if (!ret)
		ret = output__publish(out, err, len);
	if (!ret && preattach)
		launch__map(&a->launch);
	if (!ret) {
		/* session__start() gives up the rights that injection needs. */
		record_inject__run(a);
		status_line__set("scanning %u processes ...", count_processes());
		ret = session__start(s, err, len);
	}
	status_line__set("%s", "");
	launch__unmap(&a->launch);
	print_warnings(s);
	if (!ret && !a->quiet)
		fprintf(stderr, "sonde: tracing into %s%s\n", out->path,
			a->session.duration || a->launch.pid ? "" : "; Ctrl-C stops");
	if (!ret && !a->quiet && a->session.capture)
		print_armed(a->session.capture);
	return ret;
}

/* Passes the trace to the process that reports it. It may be incomplete, but not removed. */
static void pass_on(const struct output *out)
{
	char why[512];

	if (!output__check(out, why, sizeof(why)))
		subcommand__pass_file(out->fd);
}

/* Traces until the recording ends. *status gets the exit status if the command could not be run. */
static int trace(struct session *s, struct record_args *a, struct output *out, int *status, char *err, size_t len)
{
	enum end_reason reason = END_COMMAND;
	int ret, stopped;
	bool gone;

	handle_signals();
	if (a->delay > 0 || a->delay_signal) {
		*status = run_command(a);
		if (!*status && !wait_for_start(s, a)) {
			fprintf(stderr, "sonde: stopped before tracing began: nothing was recorded\n");
			ret = session__create(s, out->fd, err, len);
			if (!ret)
				ret = output__publish(out, err, len);
			if (!ret)
				ret = session__stop(s, END_SIGNAL, err, len);
			if (!ret)
				pass_on(out);
			return ret;
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
	if (*status) {
		output__discard(out);
	} else {
		record_end__print(s, out->path, reason, gone, a->quiet);
		pass_on(out);
	}
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
	bool usage = false; /* -EINVAL of later steps is the kernel's, not wrong usage */

	handle_user_signals(a);
	a->session.stop = &stops;
	a->session.attaching = show_attaching;
	status_line__set("loading programs into the kernel ...");
	if (status_line__is_shown())
		a->live = record_live__follow(&a->session);
	ret = session__open(&s, &a->session, err, sizeof(err));
	status_line__set("%s", "");
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
	record_live__free(a->live);
	return status ? status : exit_status(a, ret, usage, &st);
}

int record__run(struct record_args *a)
{
	int ret = fork_command(a);

	if (ret)
		return ret == EXIT_FAILED || ret == EXIT_USAGE ? EXIT_OWN_FAILURE : ret;
	return record(a);
}
