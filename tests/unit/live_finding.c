// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The first line of `sonde top`: of which figures it is made. */
#include "findings/live_finding.h"
#include "kernel/embedded.h"
#include "model/lock_kind.h"
#include "test.h"

#define MS 1000000ULL

static bool first(struct live_view v, struct finding *f)
{
	struct embedded embedded;
	struct names *names = NULL;
	char err[512];
	bool found;

	if (embedded__open(&embedded, err, sizeof(err)) || names__create(&names, embedded.schema)) {
		embedded__close(&embedded);
		return CHECK(!"the schema");
	}
	v.from = 1000 * MS;
	v.to = 2000 * MS;
	found = live_finding__first(&v, names, f);
	names__free(names);
	embedded__close(&embedded);
	return found;
}

TEST(computing)
{
	struct live_process p = {
		.pid = 7, .threads = 1, .ns = 800 * MS, .function = "hold (app.py)", .function_ns = 600 * MS
	};
	struct finding f;

	CHECK(first((struct live_view){ .processes = &p, .n_processes = 1 }, &f));
	CHECK(f.kind == FINDING_COMPUTE && f.lost_ns == 800 * MS && f.wall_ns == 1000 * MS);
	CHECK_TEXT(f.text, "process 7 ran on a CPU 80% of 1.000 s; 75% of that in hold (app.py).");
	/* samples of one thread may stand for a tick more than the interval */
	p.ns = 1020 * MS;
	p.function_ns = 1040 * MS;
	CHECK(first((struct live_view){ .processes = &p, .n_processes = 1 }, &f));
	CHECK_TEXT(f.text, "process 7 ran on a CPU 100% of 1.000 s; 100% of that in hold (app.py).");
	p.ns = 2000 * MS;
	p.threads = 4;
	CHECK(first((struct live_view){ .processes = &p, .n_processes = 1 }, &f) && f.wall_ns == 4000 * MS);
	CHECK_TEXT(f.text, "process 7 (4 threads) ran on a CPU 50% of 1.000 s; 52% of that in hold (app.py).");
}

TEST(waiting_for_the_gil)
{
	struct live_gil gils[2] = { { .pid = 8, .threads = 2, .wait_ns = 10 * MS, .load_percent = 1 },
				    { .pid = 7, .threads = 2, .wait_ns = 500 * MS, .load_percent = 40 } };
	struct live_pair pairs[2] = {
		{ .pid = 7,
		  .holder = "hog (app.py)",
		  .waiter = "serve (web.py)",
		  .wait_ns = 300 * MS,
		  .share_percent = 58 },
		{ .pid = 7,
		  .holder = "rare (app.py)",
		  .waiter = "serve (web.py)",
		  .wait_ns = 200 * MS,
		  .share_percent = 40 },
	};
	struct live_process p[2] = { { .pid = 9, .threads = 1, .ns = 900 * MS, .function = "other (x.py)" },
				     { .pid = 7, .threads = 1, .ns = 990 * MS, .function = "hog (app.py)" } };
	struct live_view v = { .gils = gils, .n_gils = 2, .pairs = pairs, .n_pairs = 2 };
	struct finding f;

	CHECK(first(v, &f) && f.kind == FINDING_GIL && f.lost_ns == 500 * MS && f.wall_ns == 2000 * MS);
	CHECK_TEXT(
		f.text,
		"process 7 (2 threads) waited 25% of 1.000 s for the GIL in serve (web.py); mostly held by hog (app.py) "
		"(60%).");
	/*
	 * of the same process, the waits say more than what their holder computes; another process counts by its time
	 */
	v.processes = &p[1];
	v.n_processes = 1;
	CHECK(first(v, &f) && f.kind == FINDING_GIL);
	v.processes = p;
	CHECK(first(v, &f) && f.kind == FINDING_COMPUTE && f.pid == 9);
}

TEST(waiting_for_a_disk)
{
	struct live_process disks[2] = {
		{ .pid = 8,
		  .activity = LIVE_DISK,
		  .threads = 2,
		  .ns = 1200 * MS,
		  .function = "save (db.py)",
		  .function_ns = 1000 * MS },
		{ .pid = 9, .activity = LIVE_DISK, .threads = 1, .ns = 100 * MS, .function = "load (db.py)" },
	};
	struct live_process p = { .pid = 7, .threads = 1, .ns = 800 * MS, .function = "hold (app.py)" };
	struct live_view v = { .waits = disks, .n_waits = 2, .processes = &p, .n_processes = 1 };
	struct finding f;

	CHECK(first(v, &f) && f.kind == FINDING_DISK && f.pid == 8 && f.lost_ns == 1200 * MS);
	CHECK_TEXT(f.text, "process 8 (2 threads) waited 60% of 1.000 s for the disk in save (db.py).");
	disks[0].ns = 700 * MS;
	CHECK(first(v, &f) && f.kind == FINDING_COMPUTE);
}

/* Waits were measured for 0.2 of the second, samples all the time: a wait for half of the 0.2 s counts as 0.5 s. */
TEST(waits_in_slices_of_time)
{
	struct live_process wait = {
		.pid = 8, .activity = LIVE_DISK, .threads = 1, .ns = 100 * MS, .function = "save (db.py)"
	};
	struct live_process p = { .pid = 7, .threads = 1, .ns = 400 * MS, .function = "hold (app.py)" };
	struct live_view v = {
		.waits = &wait, .n_waits = 1, .processes = &p, .n_processes = 1, .unmeasured_ns = 800 * MS
	};
	struct finding f;

	CHECK(first(v, &f) && f.kind == FINDING_DISK && f.lost_ns == 100 * MS && f.wall_ns == 200 * MS);
	p.ns = 600 * MS;
	CHECK(first(v, &f) && f.kind == FINDING_COMPUTE && f.wall_ns == 1000 * MS);
	/* no slice at all */
	v.unmeasured_ns = 1000 * MS;
	v.n_processes = 0;
	wait.ns = 0;
	CHECK(!first(v, &f));
}

TEST(waiting_for_a_lock)
{
	struct live_process waits[3] = {
		{ .pid = 8,
		  .activity = LIVE_LOCK,
		  .threads = 4,
		  .ns = 3600 * MS,
		  .function = "handle (srv.py)",
		  .ended_by = "reload (srv.py)",
		  .ended_by_ns = 3000 * MS },
		{ .pid = 9, .activity = LIVE_LOCK, .lock = LOCK_KIND_QUEUE, .threads = 9, .ns = 9000 * MS },
		{ .pid = 10, .activity = LIVE_LOCK, .rule = FINDING_IDLE, .threads = 9, .ns = 9000 * MS },
	};
	struct live_view v = { .waits = waits, .n_waits = 3 };
	struct finding f;

	CHECK(first(v, &f) && f.kind == FINDING_LOCK && f.pid == 8);
	CHECK_TEXT(
		f.text,
		"process 8 (4 threads) waited 90% of 1.000 s for a lock in handle (srv.py); mostly held by reload (srv.py) (83%).");
	waits[0].rule = FINDING_CONDITION;
	CHECK(first(v, &f) && f.kind == FINDING_CONDITION);
	waits[0].lock = LOCK_KIND_QUEUE;
	waits[0].rule = FINDING_NONE;
	CHECK(!first(v, &f));
}

TEST(waiting_for_a_peer)
{
	struct live_process wait = {
		.pid = 8, .activity = LIVE_PEER, .threads = 1, .ns = 900 * MS, .function = "fetch (srv.py)"
	};
	struct live_process p = { .pid = 7, .threads = 1, .ns = 500 * MS, .function = "hold (app.py)" };
	struct live_view v = { .waits = &wait, .n_waits = 1, .processes = &p, .n_processes = 1 };
	struct finding f;

	CHECK(first(v, &f) && f.kind == FINDING_PEER && f.pid == 8);
	CHECK_TEXT(f.text, "process 8 waited 90% of 1.000 s for another process or machine in fetch (srv.py).");
	wait.rule = FINDING_IDLE;
	CHECK(first(v, &f) && f.kind == FINDING_COMPUTE);
}

TEST(throttled)
{
	struct throttle t = { .pid = 7,
			      .time = 1000 * MS,
			      .throttled = 540 * MS,
			      .quota = 40 * MS,
			      .period = 100 * MS,
			      .periods = 10,
			      .throttled_periods = 9 };
	struct live_process p = { .pid = 7, .threads = 1, .ns = 800 * MS, .function = "hold (app.py)" };
	struct live_view v = { .throttles = &t, .n_throttles = 1, .processes = &p, .n_processes = 1 };
	struct finding f;

	/* of one process, the quota explains more than what it computes */
	CHECK(first(v, &f) && f.kind == FINDING_QUOTA);
	CHECK_TEXT(
		f.text,
		"process 7 waited 54% of 1.000 s for a CPU: it was throttled by its CPU quota; its quota lets it use "
		"40.000 ms in each 100.000 ms, and was used up in 9 of 10 periods.");
	t.throttled = 40 * MS;
	CHECK(first(v, &f) && f.kind == FINDING_COMPUTE);
}

TEST(throttled_on_several_cpus)
{
	/* 8 threads use 40 ms of each period together, which takes 5 ms, and are throttled for the other 95 ms */
	struct throttle t = { .pid = 7,
			      .time = 1000 * MS,
			      .throttled = 8 * 950 * MS,
			      .quota = 40 * MS,
			      .period = 100 * MS,
			      .periods = 10,
			      .throttled_periods = 10 };
	struct live_process wait = {
		.pid = 7, .activity = LIVE_DISK, .threads = 1, .ns = 900 * MS, .function = "load (db.py)"
	};
	struct live_view v = { .throttles = &t, .n_throttles = 1, .waits = &wait, .n_waits = 1 };
	struct finding f;

	CHECK(first(v, &f) && f.kind == FINDING_QUOTA && f.lost_ns == 950 * MS);
	/* a line that is shown after half of the counted time */
	t.time = 2000 * MS;
	t.throttled *= 2;
	t.periods = t.throttled_periods = 20;
	CHECK(first(v, &f) && f.kind == FINDING_QUOTA && f.lost_ns == 950 * MS);
	/* it explains no other wait of its process if few periods were throttled: 19 % of the time on each CPU */
	t.time = 1000 * MS;
	t.throttled = 8 * 190 * MS;
	t.periods = 10;
	t.throttled_periods = 2;
	CHECK(first(v, &f) && f.kind == FINDING_DISK);
	v.n_waits = 0;
	CHECK(first(v, &f) && f.kind == FINDING_QUOTA && f.lost_ns == 190 * MS);
}

TEST(nothing)
{
	struct live_process p = { .pid = 7 };
	struct live_gil gil = { .pid = 8, .threads = 2, .wait_ns = 40 * MS };
	struct finding f;

	CHECK(!first((struct live_view){ .n_gils = 0 }, &f));
	CHECK(!first((struct live_view){ .processes = &p, .n_processes = 1, .gils = &gil, .n_gils = 1 }, &f));
}

TEST_MAIN()
