// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The interval of `sonde top` and of the line of `sonde record`: which records it has, and what is found in it. */
#include "../../bpf/probes/gil/gil.h"
#include "../../bpf/probes/proc/proc.h"
#include "../../bpf/probes/sample/sample.h"
#include "../../bpf/probes/sched/sched.h"
#include "cmd/top.h"
#include "core/meta.h"
#include "findings/findings.h"
#include "kernel/embedded.h"
#include "model/live.h"
#include "test.h"

#include <malloc.h>
#include <sys/syscall.h>
#include <time.h>

#define MS   1000000ULL
#define MANY 300000 /* more than the capacity of any table; a million takes no more memory */

static struct embedded embedded;
static struct live *live;
static const struct query *q; /* the last interval */
static struct top_view v;

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

static bool cut(u64 ms)
{
	return CHECK(!live__cut(live, ms * MS, 0, &q));
}

/* Ends an interval and makes top's figures of it. */
static bool view(u64 ms)
{
	return cut(ms) && CHECK(q) && CHECK(!top_view__read(&v, q));
}

/* The first interval begins at 1000 ms. */
static void begin(void)
{
	char err[512];

	REQUIRE(!embedded__open(&embedded, err, sizeof(err)));
	REQUIRE(!live__new(&live, embedded.schema));
	top_view__init(&v);
	function(1, "main", "/srv/app.py", 0, FRAME_PYTHON);
	function(2, "hold", "/srv/app.py", 1, FRAME_PYTHON);
	function(3, "dumps", "/usr/lib/python3.11/json/__init__.py", 2, FRAME_PYTHON);
	function(4, "serve", "/srv/web.py", 1, FRAME_PYTHON);
	function(5, "memcpy", "/usr/lib/libc.so.6", 3, FRAME_NATIVE);
	function(6, "poll", "/usr/lib/libc.so.6", 0, FRAME_NATIVE);
	cut(1000);
	CHECK(!q);
}

static void end(void)
{
	top_view__free(&v);
	live__free(live);
	embedded__close(&embedded);
	memset(&embedded, 0, sizeof(embedded));
}

/* Thread 8 holds the GIL, with the function `hold` of the user's code. */
static void wait_for(u32 tid, u64 from, u64 to, u32 number, bool timeout)
{
	struct gil_wait w = {
		.span = { .event = { .id = ID_gil_wait, .pid = 7, .tid = tid, .time = to * MS }, .start = from * MS },
		.gil = 0x1000,
		.result = timeout ? GIL_WAIT_TIMEOUT : GIL_WAIT_SIGNAL,
		.locked = timeout,
		.number = number,
		.waiters = 2,
		.stack = 4,
		.holder = timeout ? 8 : 0,
		.dropper = timeout ? 0 : 8,
		.holder_stack = timeout ? 3 : 0,
	};

	feed(&w, sizeof(w));
}

static void dropped(u32 waiter, u32 number, u64 time)
{
	struct gil_drop d = { .event = { .id = ID_gil_drop, .pid = 7, .tid = 8, .time = time * MS },
			      .gil = 0x1000,
			      .waiter = waiter,
			      .number = number,
			      .stack = 3 };

	feed(&d, sizeof(d));
}

TEST(gil)
{
	begin();
	CHECK(view(2000) && !v.n_gils && !v.n_pairs && !v.n_functions && !*v.finding.text);
	/* 300 of 1000 ms, 150 of them with two waiters; the drop's record follows the wait's */
	wait_for(11, 2150, 2400, 1, true);
	wait_for(10, 2100, 2200, 1, true);
	wait_for(10, 2200, 2300, 2, false);
	dropped(10, 2, 2300);
	REQUIRE(view(3000) && v.n_gils == 1 && v.n_pairs);
	CHECK(v.gils[0].pid == 7 && v.gils[0].threads == 2 && v.gils[0].waits == 3 && v.gils[0].wait_ns == 450 * MS);
	CHECK(v.gils[0].load_percent > 29.9 && v.gils[0].load_percent < 30.1 && v.gils[0].deepest == 2);
	/* frames of the standard library are skipped */
	CHECK_TEXT(v.pairs[0].holder, "hold (app.py)");
	CHECK_TEXT(v.pairs[0].waiter, "serve (web.py)");
	CHECK(v.pairs[0].pid == 7 && v.pairs[0].wait_ns >= 350 * MS && v.pairs[0].share_percent > 75);
	CHECK(v.finding.kind == FINDING_GIL && v.finding.pid == 7 && v.finding.threads == 2 &&
	      v.finding.lost_ns == 450 * MS && v.finding.wall_ns == 2000 * MS);
	CHECK(strstr(v.finding.text, "process 7 (2 threads) waited 22% of 1.000 s for the GIL in serve (web.py)"));
	CHECK_TEXT(v.finding.counterpart.code.function, "hold");
	CHECK(view(4000) && !v.n_gils && !v.n_pairs && !*v.finding.text);
	end();
}

/* A wait counts in the interval in which it ends, with its part in that interval. */
TEST(edges)
{
	begin();
	cut(2000);
	wait_for(10, 1500, 1999, 1, true);
	wait_for(10, 1999, 2100, 2, true);
	REQUIRE(view(3000) && v.n_gils == 1);
	CHECK(v.gils[0].waits == 1 && v.gils[0].wait_ns == 100 * MS);
	CHECK(v.from == 2000 * MS && v.to == 3000 * MS);
	end();
}

TEST(numbers_of_gils)
{
	struct gil_wait w = { .span = { .event = { .id = ID_gil_wait, .pid = 7, .tid = 10 } },
			      .result = GIL_WAIT_SIGNAL };

	begin();
	for (u64 i = 0; i < 3; i++) {
		/* in each interval another interpreter waits most */
		for (u64 gil = 0; gil < 3; gil++) {
			w.gil = 0x1000 * (gil + 1);
			w.span.start = (1000 * (i + 1) + 100) * MS;
			w.span.event.time = w.span.start + ((gil + i) % 3 + 1) * 100 * MS;
			feed(&w, sizeof(w));
		}
		REQUIRE(view(2000 + 1000 * i) && v.n_gils == 3);
		for (u32 k = 0; k < 3; k++)
			CHECK(v.gils[k].number == (2 - k + 3 - i) % 3);
	}
	end();
}

TEST(slices)
{
	struct gil_slice s = { .span = { .event = { .id = ID_gil_slice, .time = 2000 * MS }, .start = 1900 * MS },
			       .pause = 900 * MS };

	begin();
	wait_for(10, 1920, 1940, 1, true);
	feed(&s, sizeof(s));
	REQUIRE(view(2000) && v.n_gils == 1);
	/* a tenth of the time was measured */
	CHECK(v.sliced && v.gils[0].waits == 10 && v.gils[0].load_percent > 19.9 && v.gils[0].load_percent < 20.1);
	end();
}

static void sample(u64 time, u32 stack)
{
	struct sample_cpu s = { .event = { .id = ID_sample_cpu, .pid = 7, .tid = 10, .time = time * MS },
				.period = 10 * MS,
				.stack = stack };

	feed(&s, sizeof(s));
}

static const struct top_function *named(const char *name)
{
	static const struct top_function none;

	for (u32 i = 0; i < v.n_functions; i++)
		if (!strcmp(v.functions[i].name, name))
			return &v.functions[i];
	return &none;
}

TEST(functions)
{
	begin();
	sample(1500, 5); /* memcpy, called by dumps, counts as self time of dumps */
	sample(1510, 5);
	sample(1520, 4);
	sample(1530, 6); /* without Python */
	REQUIRE(view(2000) && v.n_functions);
	CHECK(v.functions[0].self_ns == 20 * MS && !strcmp(v.functions[0].name, "dumps (__init__.py)"));
	CHECK(named("hold (app.py)")->self_ns == 0 && named("hold (app.py)")->total_ns == 20 * MS);
	CHECK(named("main (app.py)")->total_percent == 75 && named("poll (libc.so.6)")->self_percent == 25);
	CHECK(!named("memcpy (libc.so.6)")->total_ns);
	top_view__sort(&v, TOP_TOTAL);
	CHECK_TEXT(v.functions[0].name, "main (app.py)");
	end();
}

/* No event of the scheduler says that the process ran: samples do. */
TEST(computing)
{
	begin();
	for (u64 i = 0; i < 80; i++)
		sample(1000 + 12 * i, 3);
	REQUIRE(view(2000));
	CHECK(v.finding.kind == FINDING_COMPUTE && v.finding.lost_ns == 800 * MS && v.finding.wall_ns == 1000 * MS);
	CHECK(strstr(v.finding.text, "process 7 ran on a CPU 80% of 1.000 s in hold (app.py)"));
	/* samples of one thread may stand for a tick more than the interval */
	for (u64 i = 0; i < 101; i++)
		sample(2000 + 9 * i, 3);
	CHECK(view(3000) && v.finding.lost_ns == 1000 * MS);
	/* a twentieth of the time is not worth a line */
	for (u64 i = 0; i < 4; i++)
		sample(3000 + 9 * i, 3);
	CHECK(view(4000) && !*v.finding.text);
	end();
}

/* A thread of process 7 was off the CPU, and ran before and after that. */
static void wait_in(u32 tid, enum sample_reason reason, u32 nr, u64 from, u64 to, u32 stack)
{
	struct event e = { .id = ID_sample_off, .pid = 7, .tid = tid, .time = to * MS };
	struct sample_off o = {
		.span = { .event = e, .start = from * MS }, .stack = stack, .reason = reason, .nr = nr, .in_call = 1
	};
	struct sched_off s = { .span = { .event = e, .start = from * MS },
			       .wake = to * MS,
			       .state = reason == SAMPLE_DISK ? SCHED_BLOCKED : SCHED_SLEEP };

	s.span.event.id = ID_sched_off;
	feed(&o, sizeof(o));
	feed(&s, sizeof(s));
}

static void ran(u32 tid, u64 from, u64 to)
{
	struct sched_run r = { .span = { .event = { .id = ID_sched_run, .pid = 7, .tid = tid, .time = to * MS },
					 .start = from * MS },
			       .state = SCHED_SLEEP };

	feed(&r, sizeof(r));
}

TEST(waiting_for_a_disk)
{
	begin();
	ran(10, 1000, 1400);
	wait_in(10, SAMPLE_DISK, SYS_read, 1400, 2000, 3);
	REQUIRE(view(2000));
	CHECK(v.finding.kind == FINDING_DISK && v.finding.lost_ns == 600 * MS && v.finding.wall_ns == 1000 * MS);
	CHECK_TEXT(v.finding.code.function, "hold");
	end();
}

TEST(waiting_for_a_lock)
{
	struct sample_wake w = { .event = { .id = ID_sample_wake, .pid = 7, .tid = 99, .time = 1900 * MS },
				 .since = 1100 * MS,
				 .stack = 3,
				 .woken_pid = 7,
				 .woken_tid = 10,
				 .how = SAMPLE_WAKE_FUTEX };

	begin();
	ran(10, 1000, 1100);
	feed(&w, sizeof(w));
	wait_in(10, SAMPLE_LOCK, SYS_futex, 1100, 1900, 4);
	/* a stack without the user's code is that of a thread that waits for something to do */
	wait_in(14, SAMPLE_LOCK, SYS_futex, 1000, 2000, 6);
	REQUIRE(view(2000));
	CHECK(v.finding.kind == FINDING_LOCK && v.finding.pid == 7 && v.finding.lost_ns == 800 * MS);
	CHECK_TEXT(v.finding.code.function, "serve");
	CHECK_TEXT(v.finding.counterpart.code.function, "hold");
	end();
}

TEST(waiting_for_a_peer)
{
	begin();
	for (u64 at = 1000; at < 2000; at += 100) {
		ran(10, at, at + 10);
		wait_in(10, SAMPLE_IO, SYS_recvfrom, at + 10, at + 100, 4);
	}
	REQUIRE(view(2000));
	CHECK(v.finding.kind == FINDING_PEER && v.finding.lost_ns == 900 * MS);
	end();
}

TEST(throttled)
{
	struct sched_throttle t = { .event = { .id = ID_sched_throttle, .pid = 7, .time = 1900 * MS },
				    .since = 1000 * MS,
				    .throttled = 540 * MS,
				    .quota = 40 * MS,
				    .period = 100 * MS,
				    .periods = 9,
				    .throttled_periods = 9 };
	struct sched_off off = { .span = { .event = { .id = ID_sched_off, .pid = 7, .tid = 10 } },
				 .state = SCHED_RUNNABLE };

	begin();
	for (u64 at = 1000; at < 2000; at += 100) {
		ran(10, at, at + 40);
		off.span.start = off.wake = (at + 40) * MS;
		off.span.event.time = (at + 100) * MS;
		feed(&off, sizeof(off));
	}
	feed(&t, offsetof(struct sched_throttle, cgroup));
	REQUIRE(view(2000));
	CHECK(v.finding.kind == FINDING_QUOTA && v.finding.lost_ns == 600 * MS);
	end();
}

/* Waits were measured for 0.2 of the second. */
TEST(unmeasured)
{
	struct meta_unmeasured u = { .event = { .id = ID_meta_unmeasured, .time = 1500 * MS }, .start = 900 * MS };

	begin();
	feed(&u, sizeof(u));
	CHECK(!live__cut(live, 2000 * MS, 800 * MS, &q));
	/* [1000, 1500) and [1700, 2000) */
	CHECK(query__measured(q) == 200 * MS && query__duration(q) == 1000 * MS);
	CHECK(trace_facts__unmeasured(q->facts, 1600 * MS, 2000 * MS) == 300 * MS);
	end();
}

/* A busy machine: an interval has the records of a part of the time, and all of those. */
TEST(too_many_records)
{
	begin();
	for (u32 i = 0; i < 100000; i++) {
		struct gil_wait w = { .span = { .event = { .id = ID_gil_wait, .pid = 7, .tid = 10 } },
				      .gil = 0x1000,
				      .result = GIL_WAIT_SIGNAL };

		w.span.start = 1000 * MS + i * 10000;
		w.span.event.time = w.span.start + 5000;
		feed(&w, sizeof(w));
	}
	REQUIRE(view(2000) && v.n_gils == 1);
	/* 100,000 records per second reach the limit, 16,384 and as many per second, after 0.196 s */
	CHECK(v.to > 1190 * MS && v.to < 1200 * MS && !live__lost(live));
	CHECK(v.gils[0].waits > 19000 && v.gils[0].load_percent > 49 && v.gils[0].load_percent < 51);
	CHECK(view(3000) && v.to == 3000 * MS && !v.n_gils);
	end();
}

/* The line may take 10 ms of CPU time a second, of which this is a part: a machine with many waits and few stacks. */
TEST(waits_are_cheap)
{
	struct timespec from, to;
	u64 ns;

	begin();
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	for (u32 i = 0; i < 2000; i++)
		wait_in(10 + i % 500, SAMPLE_LOCK, SYS_futex, 1100 + i, 1101 + i, 4);
	REQUIRE(view(4000));
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	ns = (u64)(to.tv_sec - from.tv_sec) * 1000000000 + (u64)to.tv_nsec - (u64)from.tv_nsec;
	printf("# 2,000 waits took %.1f ms\n", (double)ns / 1e6);
	/* sanitizers and a busy machine take several times as long */
	CHECK(ns < 100 * MS);
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
	struct proc_fork fork = { .event = { .id = ID_proc_fork, .pid = 7, .tid = 7, .time = (1002 + i) * MS },
				  .child_pid = 1000 + i,
				  .child_tid = 1000 + i };
	struct gil_wait wait = { .span = { .event = { .id = ID_gil_wait, .pid = 1000 + i, .tid = 1000 + i },
					   .start = (1002 + i) * MS },
				 .gil = 0x1000,
				 .result = GIL_WAIT_TIMEOUT,
				 .stack = 1000 + i,
				 .holder_stack = 1000 + i };
	struct proc_exit ended = {
		.event = { .id = ID_proc_exit, .pid = 1000 + i, .tid = 1000 + i, .time = (1003 + i) * MS }
	};
	char name[80];

	feed(&fork, sizeof(fork));
	snprintf(name, sizeof(name), "%u%s", i, "_a_name_that_is_as_long_as_names_in_programs_are");
	function(1000 + i, name, "/srv/churn.py", 1, FRAME_PYTHON);
	wait.span.event.time = (1003 + i) * MS;
	feed(&wait, sizeof(wait));
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

	begin();
	before = memory_in_use();
	comm(7, 7, "server");
	for (u32 i = 0; i < MANY; i++) {
		come_and_go(i);
		if (i % 1000)
			continue;
		wait_for(10, 1002 + i, 1003 + i, 1, true);
		sample(1003 + i, 5);
		view(1004 + i);
		now = memory_in_use();
		most = now > most ? now : most;
	}
	view(MANY + 1010);
	sample(MANY + 1020, 5);
	wait_for(10, MANY + 1020, MANY + 1021, 1, true);
	REQUIRE(view(MANY + 1030) && v.n_gils == 1 && v.n_pairs == 1 && v.n_functions == 3);
	CHECK(!live__lost(live));
	CHECK_TEXT(v.gils[0].name, "server");
	CHECK_TEXT(v.pairs[0].holder, "hold (app.py)");
	CHECK_TEXT(v.pairs[0].waiter, "serve (web.py)");
	CHECK(named("dumps (__init__.py)")->self_ns == 10 * MS && named("main (app.py)")->total_ns == 10 * MS);
	if (!CHECK(most < before + (160 << 20)))
		printf("#   %llu MiB\n", (most - before) >> 20);
	end();
}

TEST_MAIN()
