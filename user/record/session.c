// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/session.h"

#include "kernel/kernel_btf.h"
#include "record/discover/objects.h"
#include "record/discover/shares.h"
#include "record/drain/losses.h"
#include "record/examine/examine.h"
#include "record/metadata.h"
#include "record/parts.h"
#include "record/stacks/native.h"
#include "record/stacks/python.h"
#include "record/stacks/stacks.h"
#include "record/stacks/tasks.h"
#include "sandbox/syscalls.h"
#include "sandbox/usage.h"
#include "util/account.h"
#include "util/priority.h"
#include "util/test_switch.h"
#include "util/timing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define TICK_NS		 100000000ULL
#define SECOND_NS	 1000000000ULL
#define STOPPING_NS	 3000000000ULL
#define STOPPING_LOOK_US 5000
#define TEXTS_FEW	 256 /* for tests */

/* NULL, with a message: no memory */
static struct session *new_session(const struct session_args *args, char *err, size_t len)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s) {
		snprintf(err, len, "out of memory");
		return NULL;
	}
	s->args = args;
	s->epoll_fd = -1;
	s->control.sock = -1;
	own_tids__init(&s->own_tids);
	capture__open(s);
	return s;
}

int session__open_trial(struct session **out, const struct session_args *args, const struct features *f, char *err,
			size_t len)
{
	struct session *s = *out = new_session(args, err, len);

	if (!s)
		return -ENOMEM;
	s->features = *f;
	s->load.everything = true;
	return load__open(s, err, len) ?: filter__open(s, err, len) ?: load__load(s, err, len);
}

int session__open(struct session **out, const struct session_args *args, char *err, size_t len)
{
	struct session *s = *out = new_session(args, err, len);
	int ret;

	if (!s)
		return -ENOMEM;
	priority__raise();
	if (features__old_kernel(err, len))
		return -ENOTSUP;
	if (!features__in_first_pid_namespace()) {
		snprintf(err, len,
			 "this is a pid namespace of its own: processes have other numbers here than in the kernel\n"
			 "run sonde in the host's: docker run --pid=host, or nsenter -t 1 -p");
		return -ENOTSUP;
	}
	timing__step("process start");
	ret = memory__raise_files(err, len);
	if (ret)
		return ret;
	account__load();
	/* both run in parallel with what follows */
	features__begin(&s->features);
	kernel_btf__begin();
	ret = load__open(s, err, len);
	timing__step("BPF object opened");
	features__await(&s->features);
	timing__step("features awaited");
	if (ret)
		return ret;
	ret = filter__open(s, err, len) ?: targets__open(s, err, len) ?: load__load(s, err, len);
	/* it measures while this process loads */
	features__costs(&s->features);
	timing__step("costs awaited");
	return ret;
}

static void print_string(const void *record, u32 size, void *arg)
{
	struct session *s = arg;

	s->args->print(s->embedded.schema, record, size, s->args->print_arg);
}

/* Writes everything about the trace that is known at the start. */
int session__create(struct session *s, int fd, char *err, size_t len)
{
	struct trace_head head;
	char families[256];
	int ret;

	metadata__head(s, &head, families, sizeof(families));
	ret = trace_writer__create(&s->writer, fd, s->embedded.schema, &head);
	if (ret) {
		snprintf(err, len, "cannot write the trace: %s", strerror(-ret));
		return ret;
	}
	if (session__test_switch("small-tables"))
		trace_writer__bound_texts(s->writer, TEXTS_FEW);
	if (s->args->print)
		trace_writer__listen(s->writer, print_string, s);
	metadata__clock(s);
	refused__write(s);
	return 0;
}

static void start_native(struct session *s, const struct family_host *h, u8 family, void *arg)
{
	if (h->native)
		native__of(s);
}

int session__start(struct session *s, char *err, size_t len)
{
	int ret = 0;

	s->stacks = stack_records__new();
	hosts__each(s, start_native, NULL);
	s->shares = shares__new();
	s->python = python_known__new();
	if (!s->stacks || !s->shares || !s->python || losses__new(s) || objects__new(s)) {
		snprintf(err, len, "out of memory");
		ret = -ENOMEM;
	}
	ret = ret ?: privileged__start(s, err, len);
	if (ret)
		return ret;
	if (s->args->start_paused || (s->args->schedule && step_schedule__phase(s->args->schedule, 0) == STEP_IDLE))
		session__set_suspended(s, true);
	ret = objects__scan(s, 0);
	if (!ret)
		objects__await(s);
	timing__step("processes scanned, probed");
	if (ret) {
		snprintf(err, len, "cannot read the mappings of the running processes: %s", strerror(-ret));
		return ret;
	}
	preattach__search(s);
	/* the command runs when all is probed; other processes are traced while libraries on disk are probed */
	while (s->args->command_pid && s->preattach)
		preattach__attach_next(s);
	timing__step("libraries on disk probed");
	shims__await(s);
	/*
	 * Losses until here affect no figure, and are counted separately; the records are handled later. The rings are
	 * read even if they were just read: one that is full would lose records of the traced time.
	 */
	drain__copy_now(s);
	losses__poll(s);
	timing__step("rings copied");
	s->time.cpu_at_start = usage__total_ns();
	s->time.started = session__now(s);
	if (s->args->start_paused)
		session__begin_pause(s, s->time.started);
	capture__start(s);
	s->time.next_tick = s->time.started + TICK_NS;
	s->time.next_second = s->time.started + SECOND_NS;
	/* records when tracing was live, even if the trace is cut off within a second */
	metadata__cost(s);
	/* what families report about that moment must not wait for the first tick */
	hosts__tick(s, s->time.started);
	timing__step("families begun");
	/* the attacher keeps it: targets wait for locks that it holds */
	examiner__lower(s->examiner);
	priority__lower();
	remote__report(s);
	return 0;
}

static int check_writer(struct session *s, char *err, size_t len)
{
	if (!s->write_error)
		return 0;
	snprintf(err, len, "cannot write the trace: %s; what was written before is whole and readable",
		 strerror(-s->write_error));
	return s->write_error;
}

/* Fails if the seccomp filter refused a call, because what depends on it can't be relied on. */
static int check_calls(const struct session *s, char *err, size_t len)
{
	int own = syscalls__refused(), number = own >= 0 ? own : attacher__refused(s->attacher);
	char name[64];

	if (number < 0)
		return 0;
	snprintf(err, len,
		 "the filter of system calls refused %s to %s: a fault of sonde, or an attack on it; what was "
		 "written before is whole and readable",
		 syscalls__name(number, name, sizeof(name)), own >= 0 ? "sonde" : "sonde-attacher");
	return -EPERM;
}

static int check_attacher(struct session *s, char *err, size_t len)
{
	if (attacher__stuck(s->attacher)) {
		epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, attacher__fd(s->attacher), NULL);
		attacher__note_stuck(s);
	} else if (attacher__gone(s->attacher)) {
		snprintf(err, len,
			 "the process that keeps the probes (sonde-attacher) has ended: nothing more can be "
			 "traced; what was written before is whole and readable");
		return -EPIPE;
	}
	return 0;
}

/* Does what is done each TICK_NS. */
static void tick(struct session *s, u64 now)
{
	int err;

	hosts__tick(s, now);
	meters__tick(s, now);
	capture__tick(s, now);
	slices__tick(s, now);
	if (s->native)
		native__tick(s->native, now);
	stack_records__tick(s, now);
	objects__tick(s, now);
	examiner__tick(s);
	tasks__tick(s, now);
	shares__tick(s, now);
	err = trace_writer__tick(s->writer, now);
	if (err && !s->write_error)
		s->write_error = err;
	s->time.next_tick = now + TICK_NS;
}

/* Does what is done once a second. 0, or negative errno with a text: the recording ends. */
static int tick_second(struct session *s, u64 now, char *err, size_t len)
{
	filter__tick(s);
	shares__report(s);
	losses__poll(s);
	metadata__cost(s);
	metadata__clock(s);
	if (suspension__is_on(&s->suspension))
		session__write_pause(s, now);
	features__ended(&s->features);
	preattach__reap(s);
	hung__forget_ended(&s->hung);
	remote__report(s);
	s->time.next_second = now + SECOND_NS;
	return memory__poll(s, now, err, len);
}

int session__poll(struct session *s, int timeout_ms, char *err, size_t len)
{
	struct epoll_event ev[16];
	u64 now;
	int ret;

	test_switch__captured(s, true);
	ret = check_calls(s, err, len) ?: check_attacher(s, err, len);
	if (ret)
		return ret;

	/* one poll may not empty a full ring */
	epoll_wait(s->epoll_fd, ev, 16, drain__has_more(&s->drain) || preattach__is_ready(s) ? 0 : timeout_ms);
	changed__poll(s);
	control__poll(s);
	objects__follow(s);
	if (preattach__is_ready(s))
		preattach__attach_next(s);
	python__enter_late(s);
	drain__rings(s);
	filter__follow(s);
	now = session__now(s);
	if (now >= s->time.next_tick)
		tick(s, now);
	if (now >= s->time.next_second)
		ret = tick_second(s, now, err, len);
	return ret ?: check_writer(s, err, len);
}

/* Runs the iterators over all tasks, or those over all open files. */
static void run_iterators(struct session *s, bool files)
{
	PROGRAMS_EACH(p, &s->embedded.probes) {
		const struct family_host *h = hosts__of(s, p->family->id);
		int err;

		if (!p->enabled || p->section.kind != SECTION_ITER || p->section.on_demand ||
		    !strcmp(p->section.rest, "task_file") != files)
			continue;
		/* has run in slices__stop(), or when the last slice ended */
		if (h && h->open_iterator && !strcmp(h->open_iterator, p->name))
			continue;
		err = session__run_iter(s, p->name, 0);
		if (!err || attacher__gone(s->attacher))
			continue;
		session__warn(s, "what the program %s finds as tracing ends is missing: %s", p->name, strerror(-err));
		session__lost(s, p->family->name, LOSS_BUDGET, 1);
	}
}

/*
 * Writes open spans, then the other ends of pipes and connections, because open waits can be the first use of a file.
 */
static void write_open(struct session *s)
{
	/* readers put events in order that come a second or two too late, not more */
	drain__all(s);
	run_iterators(s, false);
	run_iterators(s, true);
}

static void note_more_records(struct session *s, const struct family_host *h, u8 family, void *arg)
{
	if (h->has_more_records)
		*(bool *)arg |= h->has_more_records(s);
}

/* Waits for records that families still expect, while the probes are attached. */
static void stop_families(struct session *s)
{
	u64 end = session__now(s) + STOPPING_NS;
	bool has_more;

	do {
		has_more = false;
		drain__rings(s);
		hosts__each(s, note_more_records, &has_more);
		if (has_more)
			usleep(STOPPING_LOOK_US);
	} while (has_more && session__now(s) < end && !attacher__gone(s->attacher));
}

/*
 * Detaches the probes first: what is open then stays in the maps, where the iterators find it; in the reverse order a
 * call could be written twice. Before Linux 6.6 a probe is a perf event, which the kernel takes up to 0.1 s to close:
 * families with only tracepoints, which fill the rings meanwhile, are detached before that.
 */
int session__stop(struct session *s, enum end_reason reason, char *err, size_t len)
{
	struct meta_end end = {};
	int ret;

	priority__raise();
	if (s->time.started) {
		/* with -d not now, as a busy machine may run this process late */
		s->time.stopped = reason == END_DURATION ? s->time.started + s->args->duration : session__now(s);
		missed__finish(s);
		site_links__warn_hidden(s);
		site_links__note_off(s);
		if (s->losses)
			losses__poll(s);
	}
	/* NULL: stopped before the start */
	if (s->attacher) {
		stop_families(s);
		meters__finish(s);
		capture__finish(s);
		session__write_pause(s, s->time.stopped);
		slices__stop(s);
		tracepoints__detach(s, true);
		site_links__detach(s);
		tracepoints__detach(s, false);
		write_open(s);
		drain__last(s);
		capture__warn(s);
		if (s->native)
			native__finish(s->native);
		/* after the names of scripts, whose lines are quoted */
		stack_records__finish(s);
		/* the tick counts what the last records lacked */
		if (s->native)
			native__tick(s->native, session__now(s));
		shares__report(s);
		losses__poll(s);
		metadata__hits(s);
		metadata__clock(s);
		metadata__cost(s);
		memory__write_tables(s);
		attacher__note_stuck(s);
		remote__report(s);
		shares__warn_unprinted(s);
	}
	end.event = session__event(s, ID_meta_end);
	end.stop = s->time.stopped;
	end.reason = reason;
	session__emit(s, &end, sizeof(end));
	ret = trace_writer__finish(s->writer);
	losses__add_refused(s);
	if (ret && !s->write_error)
		s->write_error = ret;
	return check_writer(s, err, len);
}

void session__free(struct session *s)
{
	if (!s)
		return;
	features__finish(&s->features);
	preattach__free(s);
	meters__free(s);
	examiner__free(s->examiner);
	task_samples__free(s->tasks);
	attacher__free(s->attacher);
	remote__free(s);
	drain__close(&s->drain);
	hosts__free(s);
	mmaps__close(s->mmaps);
	memory__close(&s->memory);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	trace_writer__free(s->writer);
	objects__free(s->objects);
	shares__free(s->shares);
	free(s->python);
	site_links__free(&s->site_links);
	stack_records__free(s->stacks);
	native__free(s->native);
	losses__free(s->losses);
	capture__close(&s->capture);
	control__close(&s->control);
	targets__close(&s->targets);
	filter__close(&s->filter);
	embedded__close(&s->embedded);
	shims__free(&s->shims);
	own_tids__free(&s->own_tids);
	warnings__free(&s->warnings);
	refused__free(&s->refused);
	free(s);
}
