// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The figures that `sonde top` computes from records: load, blame and functions of an interval. */
#include "../../bpf/probes/gil/gil.h"
#include "../../bpf/probes/proc/proc.h"
#include "../../bpf/probes/sample/sample.h"
#include "../../bpf/probes/sched/sched.h"
#include "core/meta.h"
#include "kernel/embedded.h"
#include "model/live.h"
#include "model/lock_kind.h"
#include "test.h"

#include <malloc.h>
#include <sys/syscall.h>
#include <time.h>

#define MS   1000000ULL
#define MANY 300000 /* more than the capacity of any table; a million takes no more memory */

static struct embedded embedded;
static struct live *live;

/* As findings have such rules for functions of libraries */
static u8 rule(const struct stack_frame *f)
{
	return !strcmp(f->name, "get") ? 5 : 0;
}

static void feed(const void *record, u32 size)
{
	CHECK(!live__feed(live, record, size));
}

static void text(u32 id, const char *words)
{
	char record[sizeof(struct meta_string) + 64] = {};
	struct meta_string *s = (struct meta_string *)record;

	s->event.id = ID_meta_string;
	s->string = id;
	memcpy(record + offsetof(struct meta_string, text), words, strlen(words));
	feed(record, (u32)(offsetof(struct meta_string, text) + strlen(words)));
}

/* Function `id` of a file, and a frame in it with the same id. */
static void function(u32 id, const char *name, const char *file, u32 caller, enum frame_kind kind)
{
	struct meta_code c = {
		.event = { .id = ID_meta_code }, .code = id, .name = id * 2, .file = id * 2 + 1, .kind = kind
	};
	struct meta_frame f = {
		.event = { .id = ID_meta_frame }, .frame = id, .caller = caller, .code = id, .kind = kind
	};

	text(id * 2, name);
	text(id * 2 + 1, file);
	feed(&c, sizeof(c));
	feed(&f, sizeof(f));
}

static void begin(void)
{
	char err[512];

	REQUIRE(!embedded__open(&embedded, err, sizeof(err)));
	REQUIRE(!live__new(&live, embedded.schema, rule));
	function(1, "main", "/srv/app.py", 0, FRAME_PYTHON);
	function(2, "hold", "/srv/app.py", 1, FRAME_PYTHON);
	function(3, "dumps", "/usr/lib/python3.11/json/__init__.py", 2, FRAME_PYTHON);
	function(4, "serve", "/srv/web.py", 1, FRAME_PYTHON);
	function(5, "memcpy", "/usr/lib/libc.so.6", 3, FRAME_NATIVE);
	function(6, "poll", "/usr/lib/libc.so.6", 0, FRAME_NATIVE);
}

static void end(void)
{
	live__free(live);
	embedded__close(&embedded);
	memset(&embedded, 0, sizeof(embedded));
}

static void wait_for(u32 tid, u64 from, u64 to, u32 number, bool timeout, u32 holder_stack)
{
	struct gil_wait w = {
		.span = { .event = { .id = ID_gil_wait, .pid = 7, .tid = tid, .time = to * MS }, .start = from * MS },
		.gil = 0x1000,
		.result = timeout ? GIL_WAIT_TIMEOUT : GIL_WAIT_SIGNAL,
		.number = number,
		.stack = 4,
		.holder_stack = holder_stack,
	};

	feed(&w, sizeof(w));
}

static void dropped(u32 waiter, u32 number, u64 time, u32 stack)
{
	struct gil_drop d = { .event = { .id = ID_gil_drop, .pid = 7, .tid = 8, .time = time * MS },
			      .gil = 0x1000,
			      .waiter = waiter,
			      .number = number,
			      .stack = stack };

	feed(&d, sizeof(d));
}

TEST(gil)
{
	struct live_view v;

	begin();
	CHECK(!live__cut(live, 1000 * MS, &v) && !v.n_gils && !v.n_pairs && !v.n_functions);
	/* 300 of 1000 ms, 100 of them with two waiters; the drop's record follows the wait's */
	wait_for(10, 1100, 1200, 1, true, 3);
	wait_for(10, 1200, 1300, 2, false, 0);
	wait_for(11, 1250, 1400, 1, false, 0);
	dropped(10, 2, 1300, 3);
	CHECK(!live__cut(live, 2000 * MS, &v));
	REQUIRE(v.n_gils == 1 && v.n_pairs == 2);
	CHECK(v.gils[0].pid == 7 && v.gils[0].threads == 2 && v.gils[0].waits == 3 && v.gils[0].wait_ns == 350 * MS);
	CHECK(v.gils[0].load_percent > 29.9 && v.gils[0].load_percent < 30.1 && v.gils[0].deepest == 2);
	/* frames of the standard library are skipped; the dropper for thread 11 is unknown */
	CHECK(!strcmp(v.pairs[0].holder, "hold (app.py)") && !strcmp(v.pairs[0].waiter, "serve (web.py)"));
	CHECK(v.pairs[0].waits == 2 && v.pairs[0].wait_ns == 200 * MS);
	CHECK(!strcmp(v.pairs[1].holder, "holder unknown") && v.pairs[1].wait_ns == 150 * MS);
	CHECK(!live__cut(live, 3000 * MS, &v) && !v.n_gils && !v.n_pairs);
	end();
}

TEST(an_attempt_keeps_its_holder)
{
	struct live_view v;

	begin();
	live__cut(live, 1000 * MS, &v);
	/* the first timed wait has a holder; the second one of the attempt is ended by a signal, without dropper */
	wait_for(10, 1100, 1105, 1, true, 2);
	wait_for(10, 1105, 1107, 2, false, 0);
	CHECK(!live__cut(live, 2000 * MS, &v));
	REQUIRE(v.n_pairs == 1);
	CHECK(v.pairs[0].waits == 2 && !strcmp(v.pairs[0].holder, "hold (app.py)"));
	end();
}

TEST(slices)
{
	struct gil_slice s = { .span = { .event = { .id = ID_gil_slice, .time = 1100 * MS }, .start = 1000 * MS },
			       .pause = 900 * MS };
	struct live_view v;

	begin();
	live__cut(live, 1000 * MS, &v);
	wait_for(10, 1020, 1040, 1, true, 2);
	feed(&s, sizeof(s));
	CHECK(!live__cut(live, 2000 * MS, &v));
	REQUIRE(v.n_gils == 1);
	/* a tenth of the time was measured */
	CHECK(v.sliced && v.gils[0].waits == 10 && v.gils[0].load_percent > 19.9 && v.gils[0].load_percent < 20.1);
	end();
}

static void sample(u32 stack)
{
	struct sample_cpu s = { .event = { .id = ID_sample_cpu, .pid = 7, .tid = 10, .time = 1500 * MS },
				.period = 10 * MS,
				.stack = stack };

	feed(&s, sizeof(s));
}

static const struct live_function *named(const struct live_view *v, const char *name)
{
	static const struct live_function none;

	for (u32 i = 0; i < v->n_functions; i++)
		if (!strcmp(v->functions[i].name, name))
			return &v->functions[i];
	return &none;
}

TEST(functions)
{
	struct live_view v;

	begin();
	live__cut(live, 1000 * MS, &v);
	sample(5); /* memcpy, called by dumps, counts as self time of dumps */
	sample(5);
	sample(4);
	sample(6); /* without Python */
	CHECK(!live__cut(live, 2000 * MS, &v) && v.samples == 4);
	CHECK(v.functions[0].self_ns == 20 * MS && !strcmp(v.functions[0].name, "dumps (__init__.py)"));
	CHECK(named(&v, "hold (app.py)")->self_ns == 0 && named(&v, "hold (app.py)")->total_ns == 20 * MS);
	CHECK(named(&v, "main (app.py)")->total_percent == 75 && named(&v, "poll (libc.so.6)")->self_percent == 25);
	CHECK(!named(&v, "memcpy (libc.so.6)")->total_ns);
	end();
}

static void off(u32 pid, enum sample_reason reason, u64 from, u64 to, u32 stack)
{
	struct sample_off o = { .span = { .event = { .id = ID_sample_off, .pid = pid, .tid = pid, .time = to * MS },
					  .start = from * MS },
				.stack = stack,
				.reason = reason };

	feed(&o, sizeof(o));
}

TEST(disks)
{
	struct live_view v;

	begin();
	live__cut(live, 1000 * MS, &v);
	off(7, SAMPLE_DISK, 1100, 1200, 3);
	off(7, SAMPLE_FAULT, 1300, 1350, 4);
	off(8, SAMPLE_DISK, 500, 1300, 4); /* from before the interval */
	off(9, SAMPLE_POLL, 1000, 2000, 4); /* may be idle */
	CHECK(!live__cut(live, 2000 * MS, &v));
	REQUIRE(v.n_waits == 2);
	CHECK(v.waits[0].pid == 8 && v.waits[0].threads == 1 && v.waits[0].ns == 300 * MS);
	CHECK(v.waits[1].pid == 7 && v.waits[1].ns == 150 * MS && !strcmp(v.waits[1].function, "hold (app.py)"));
	CHECK(!live__cut(live, 3000 * MS, &v) && !v.n_waits);
	/* waits were measured for 0.2 s: a twentieth of that counts */
	off(7, SAMPLE_DISK, 3100, 3120, 3);
	live__set_unmeasured(live, 800 * MS);
	CHECK(!live__cut(live, 4000 * MS, &v) && v.unmeasured_ns == 800 * MS);
	CHECK(v.n_waits == 1 && v.waits[0].threads == 1 && v.waits[0].ns == 20 * MS);
	off(7, SAMPLE_DISK, 4100, 4120, 3);
	CHECK(!live__cut(live, 5000 * MS, &v) && !v.unmeasured_ns && v.n_waits == 1 && !v.waits[0].threads);
	end();
}

static void woke(u32 by, u32 tid, u64 since, u32 stack)
{
	struct sample_wake w = { .event = { .id = ID_sample_wake, .pid = 7, .tid = by, .time = (since + 100) * MS },
				 .since = since * MS,
				 .stack = stack,
				 .woken_pid = 7,
				 .woken_tid = tid };

	feed(&w, sizeof(w));
}

static void wait_in(u32 tid, enum sample_reason reason, u32 nr, u64 from, u64 to, u32 stack)
{
	struct sample_off o = { .span = { .event = { .id = ID_sample_off, .pid = 7, .tid = tid, .time = to * MS },
					  .start = from * MS },
				.stack = stack,
				.reason = reason,
				.nr = nr,
				.in_call = 1 };

	feed(&o, sizeof(o));
}

TEST(locks_and_their_holders)
{
	struct live_view v;

	begin();
	function(20, "get", "/usr/lib/python3.11/queue.py", 4, FRAME_PYTHON);
	function(21, "pthread_mutex_lock", "/usr/lib/libc.so.6", 2, FRAME_NATIVE);
	live__cut(live, 1000 * MS, &v);
	woke(99, 10, 1100, 3);
	wait_in(10, SAMPLE_LOCK, SYS_futex, 1100, 1400, 4);
	wait_in(11, SAMPLE_LOCK, SYS_futex, 1100, 1300, 4);
	/* a library function with a rule, a native lock, and a stack without the user's code */
	wait_in(12, SAMPLE_LOCK, SYS_futex, 1100, 1200, 20);
	wait_in(13, SAMPLE_LOCK, SYS_futex, 1100, 1160, 21);
	wait_in(14, SAMPLE_LOCK, SYS_futex, 1100, 1900, 6);
	CHECK(!live__cut(live, 2000 * MS, &v));
	REQUIRE(v.n_waits == 3);
	CHECK(v.waits[0].activity == LIVE_LOCK && v.waits[0].threads == 2 && v.waits[0].ns == 500 * MS);
	CHECK(!v.waits[0].rule && !v.waits[0].lock);
	CHECK_TEXT(v.waits[0].function, "serve (web.py)");
	CHECK_TEXT(v.waits[0].ended_by, "hold (app.py)");
	CHECK(v.waits[0].ended_by_ns == 300 * MS);
	CHECK(v.waits[1].rule == 5 && v.waits[1].ns == 100 * MS);
	CHECK(!*v.waits[1].ended_by);
	CHECK(v.waits[2].lock == LOCK_KIND_MUTEX && v.waits[2].ns == 60 * MS);
	CHECK_TEXT(v.waits[2].function, "hold (app.py)");
	end();
}

TEST(a_convoy)
{
	struct live_view v;

	begin();
	live__cut(live, 1000 * MS, &v);
	/* thread 99 held the lock until 1500; thread 10 got it next and woke 11 after 2 ms, which woke 12 */
	woke(99, 10, 1100, 3);
	wait_in(10, SAMPLE_LOCK, SYS_futex, 1100, 1500, 4);
	woke(10, 11, 1100, 4);
	wait_in(11, SAMPLE_LOCK, SYS_futex, 1100, 1502, 4);
	woke(11, 12, 1100, 4);
	wait_in(12, SAMPLE_LOCK, SYS_futex, 1100, 1504, 4);
	CHECK(!live__cut(live, 2000 * MS, &v));
	REQUIRE(v.n_waits == 1);
	CHECK(v.waits[0].ns == 1206 * MS && v.waits[0].ended_by_ns == 1202 * MS);
	CHECK_TEXT(v.waits[0].ended_by, "hold (app.py)");
	end();
}

TEST(peers)
{
	struct live_view v;

	begin();
	live__cut(live, 1000 * MS, &v);
	wait_in(10, SAMPLE_IO, SYS_recvfrom, 1100, 1300, 4);
	wait_in(10, SAMPLE_POLL, SYS_ppoll, 1300, 1400, 4);
	/* these may be idle: a loop's wait for events, and a wait of more than a second */
	wait_in(10, SAMPLE_POLL, SYS_epoll_pwait, 1400, 1800, 4);
	wait_in(11, SAMPLE_IO, SYS_recvfrom, 500, 1900, 4);
	CHECK(!live__cut(live, 2000 * MS, &v));
	REQUIRE(v.n_waits == 1);
	CHECK(v.waits[0].activity == LIVE_PEER && v.waits[0].threads == 1 && v.waits[0].ns == 300 * MS);
	end();
}

static void throttle(u32 pid, u64 throttled)
{
	struct sched_throttle t = { .event = { .id = ID_sched_throttle, .pid = pid, .time = 1900 * MS },
				    .since = 1000 * MS,
				    .throttled = throttled * MS,
				    .quota = 40 * MS,
				    .period = 100 * MS,
				    .periods = 10,
				    .throttled_periods = 9 };

	feed(&t, sizeof(t));
}

TEST(quotas)
{
	struct live_view v;

	begin();
	live__cut(live, 1000 * MS, &v);
	throttle(7, 500);
	throttle(7, 100); /* of a cgroup above */
	CHECK(!live__cut(live, 2000 * MS, &v));
	REQUIRE(v.n_throttles == 1);
	CHECK(v.throttles[0].pid == 7 && v.throttles[0].throttled == 500 * MS &&
	      v.throttles[0].time - v.throttles[0].since == 900 * MS);
	CHECK(v.throttles[0].quota == 40 * MS);
	CHECK(v.throttles[0].period == 100 * MS && v.throttles[0].periods == 10 &&
	      v.throttles[0].throttled_periods == 9);
	CHECK(!live__cut(live, 3000 * MS, &v) && !v.n_throttles);
	end();
}

/* The line may take 10 ms of CPU time a second, of which this is a part: a machine with many waits and few stacks. */
TEST(waits_are_cheap)
{
	struct timespec from, to;
	struct live_view v;
	u64 ns;

	begin();
	live__cut(live, 1000 * MS, &v);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	for (u32 i = 0; i < 2000; i++) {
		woke(99, 10 + i % 500, 1100 + i, 3);
		wait_in(10 + i % 500, SAMPLE_LOCK, SYS_futex, 1100 + i, 1101 + i, 4);
	}
	CHECK(!live__cut(live, 4000 * MS, &v));
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	ns = (u64)(to.tv_sec - from.tv_sec) * 1000000000 + (u64)to.tv_nsec - (u64)from.tv_nsec;
	printf("# 2,000 waits and their wakers took %.1f ms\n", (double)ns / 1e6);
	/* sanitizers and a busy machine take several times as long */
	CHECK(v.n_waits == 1 && ns < 100 * MS);
	end();
}

static void comm(u32 pid, u32 tid, const char *name)
{
	struct proc_rename r = { .event = { .id = ID_proc_rename, .pid = pid, .tid = tid, .time = MS } };

	snprintf(r.comm, sizeof(r.comm), "%s", name);
	feed(&r, sizeof(r));
}

/* A process that is forked, waits for a GIL in its own function, and ends, or does not if its exit event was lost. */
static void come_and_go(u32 i)
{
	struct proc_fork fork = { .event = { .id = ID_proc_fork, .pid = 7, .tid = 7, .time = (2 + i) * MS },
				  .child_pid = 1000 + i,
				  .child_tid = 1000 + i };
	struct proc_exit ended = {
		.event = { .id = ID_proc_exit, .pid = 1000 + i, .tid = 1000 + i, .time = (3 + i) * MS }
	};
	char name[80];

	feed(&fork, sizeof(fork));
	snprintf(name, sizeof(name), "%u%s", i, "_a_name_that_is_as_long_as_names_in_programs_are");
	function(1000 + i, name, "/srv/churn.py", 1, FRAME_PYTHON);
	wait_for(1000 + i, 2 + i, 3 + i, i, true, 1000 + i);
	if (i % 16)
		feed(&ended, sizeof(ended));
}

static u64 memory_in_use(void)
{
#if __GLIBC_PREREQ(2, 33)
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
#else
	return 0;
#endif
}

/* Simulates days of a busy machine: memory is bounded, and entries in constant use are not evicted. */
TEST(many_tasks_and_functions)
{
	u64 before, most = 0, now;
	struct live_view v;

	begin();
	before = memory_in_use();
	comm(7, 7, "server");
	for (u32 i = 0; i < MANY; i++) {
		come_and_go(i);
		if (i % 1000)
			continue;
		text(10, "serve");
		wait_for(10, 2 + i, 3 + i, 1, true, 3);
		sample(5);
		CHECK(!live__cut(live, (4 + i) * MS, &v) && !v.lost);
		now = memory_in_use();
		most = now > most ? now : most;
	}
	live__cut(live, (MANY + 10) * MS, &v);
	sample(5);
	wait_for(10, MANY + 20, MANY + 21, 1, true, 3);
	CHECK(!live__cut(live, (MANY + 30) * MS, &v));
	REQUIRE(v.n_gils == 1 && v.n_pairs == 1 && v.n_functions == 3);
	CHECK_TEXT(v.gils[0].name, "server");
	CHECK_TEXT(v.pairs[0].holder, "hold (app.py)");
	CHECK_TEXT(v.pairs[0].waiter, "serve (web.py)");
	CHECK(named(&v, "dumps (__init__.py)")->self_ns == 10 * MS && named(&v, "main (app.py)")->total_ns == 10 * MS);
	if (!CHECK(most < before + (160 << 20)))
		printf("#   %llu MiB\n", (most - before) >> 20);
	end();
}

TEST_MAIN()
