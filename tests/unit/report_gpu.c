// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Report gpu, compared with a truth that is computed nanosecond by nanosecond, for random work on devices
 * and random activity of the launching thread.
 */
#include "core/meta.h"
#include "gpu_support.h"
#include "probes/gil/gil.h"
#include "probes/lock/lock.h"
#include "probes/nccl/nccl.h"
#include "probes/sched/sched.h"
#include "probes/syscall/syscall.h"
#include "findings/about.h"
#include "report/gpu/gpu.h"
#include "random.h"
#include "test.h"

#define BASE 50000000000ull
#define SPAN 6000u /* length of the synthetic trace, ns */
#define PID  100u
#define TID  105u

static struct made made;
static struct query args;

/* The work on a device in each ns. */
static struct truth {
	u8 kernels[SPAN], copies[SPAN];
	u32 first, last;
	u64 n;
} truth[3];

static void add_work(u32 pid, u32 device, u32 from, u32 ns, bool kernel, u32 correlation, u32 stream)
{
	struct truth *t = &truth[device];

	if (kernel)
		ADD(&made, gpu_kernel, .span = SPAN_AT(pid, 0, BASE + from, BASE + from + ns),
		    .kernel = {
			    .name = 7, .device = device, .context = 1, .stream = stream, .correlation = correlation });
	else
		ADD(&made, gpu_memcpy, .span = SPAN_AT(pid, 0, BASE + from, BASE + from + ns),
		    .copy = { .bytes = 8,
			      .device = device,
			      .context = 1,
			      .stream = stream,
			      .kind = 1,
			      .correlation = correlation });
	for (u32 i = from; i < from + ns && i < SPAN; i++)
		(kernel ? t->kernels : t->copies)[i]++;
	t->first = !t->n || from < t->first ? from : t->first;
	t->last = from + ns > t->last ? from + ns : t->last;
	t->n++;
}

static bool open_made(void)
{
	if (!made__open(&made))
		return false;
	args = (struct query){ .trace = made.trace, .names = made.names, .start = BASE };
	return true;
}

static void check_device(const struct gpu_busy *b, u32 device, u32 from, u32 to)
{
	struct gpu_device_key key = { PID, device };
	const struct gpu_device_sum *d = map__find(&b->devices, &key);
	u64 busy = 0, kernel = 0, copy = 0, both = 0, depth = 0, gaps = 0, longest = 0, gap = 0;
	const struct truth *t = &truth[device];
	u32 deepest = 0;

	REQUIRE(d);
	from = t->first > from ? t->first : from;
	to = t->last < to ? t->last : to;
	for (u32 i = from; i < to; i++) {
		bool is = t->kernels[i] || t->copies[i];

		busy += is;
		kernel += t->kernels[i] > 0;
		copy += t->copies[i] > 0;
		both += t->kernels[i] && t->copies[i];
		depth += t->kernels[i];
		deepest = t->kernels[i] > deepest ? t->kernels[i] : deepest;
		gap = is ? 0 : gap + 1;
		gaps += gap == 1;
		longest = gap > longest ? gap : longest;
	}
	CHECK(d->busy_ns == busy && d->kernel_ns == kernel && d->copy_ns == copy && d->both_ns == both);
	CHECK(d->depth_ns == depth && d->deepest == deepest);
	CHECK(d->gaps == gaps && d->longest == longest);
	CHECK(d->first == BASE + from && d->last == BASE + to && gpu_device__idle(d) == to - from - busy);
}

static u64 heard[3];

static int on_busy(u32 device, u64 from, u64 to, void *arg)
{
	const struct gpu_busy *b = arg;

	heard[gpu_busy__key(b, device)->device] += to - from;
	return 0;
}

static void check_random_work(u32 window, u32 number)
{
	struct gpu_busy b;

	seed = number;
	memset(truth, 0, sizeof(truth));
	memset(heard, 0, sizeof(heard));
	gpu_busy__window = window;
	REQUIRE(made__begin(&made));
	for (u32 i = 0; i < 60; i++) {
		u32 device = pick(3);

		/* some touch, some are nested, some are as long as the trace */
		add_work(PID, device, pick(SPAN - 200), 1 + pick(pick(20) ? 150 : 2000) % 190, pick(3), 0, 7 + pick(2));
	}
	/* another process's device is a separate one */
	ADD(&made, gpu_kernel, .span = SPAN_AT(PID + 1, 0, BASE, BASE + SPAN), .kernel = { .device = 1 });
	REQUIRE(open_made());
	CHECK(!gpu_busy__read(&b, &args, on_busy, &b));
	for (u32 i = 0; i < 3; i++) {
		struct gpu_device_key key = { PID, i };
		const struct gpu_device_sum *d = map__find(&b.devices, &key);

		check_device(&b, i, 0, SPAN);
		CHECK(d && heard[i] == d->busy_ns + (i == 1 ? SPAN : 0));
	}
	CHECK(b.devices.n == 4);
	gpu_busy__free(&b);
	/* a part of the time, whose ends may be within work */
	args.from = BASE + 1000 + pick(500);
	args.to = BASE + 3000 + pick(500);
	args.pids = (struct trace_ids){ (const u32[]){ PID }, 1 };
	CHECK(!gpu_busy__read(&b, &args, NULL, NULL));
	for (u32 i = 0; i < 3; i++)
		check_device(&b, i, args.from - BASE, args.to - BASE);
	CHECK(b.devices.n == 3);
	gpu_busy__free(&b);
	made__end(&made);
}

TEST(devices_as_counted_by_the_nanosecond)
{
	for (u32 i = 1; i <= 10; i++)
		check_random_work(2u << 20, i);
}

/* The same, read in windows of a few events. */
TEST(devices_in_windows)
{
	for (u32 i = 11; i <= 16; i++)
		check_random_work(4, i);
}

/* The launching thread's activity in each ns */
static struct doings {
	u8 sched[SPAN]; /* UNKNOWN, RUNS, .. */
	u8 gil[SPAN], lock[SPAN], nccl[SPAN], cuda[SPAN], call[SPAN];
} did;

enum { UNKNOWN, RUNS, WANTS, SLEEPS };
enum { CALL_READ = 1, CALL_SLEEP, CALL_OTHER };

static enum gap_cause cause_at(u32 i)
{
	if (did.gil[i])
		return GAP_GIL;
	if (did.lock[i])
		return did.sched[i] == WANTS ? GAP_CPU : GAP_LOCK;
	if (did.nccl[i])
		return GAP_NCCL;
	if (did.cuda[i])
		return GAP_SYNC;
	if (did.call[i])
		return did.sched[i] == WANTS	 ? GAP_CPU :
		       did.call[i] == CALL_READ	 ? GAP_READ :
		       did.call[i] == CALL_SLEEP ? GAP_SLEEP :
						   GAP_CALL;
	return did.sched[i] == RUNS   ? GAP_RUN :
	       did.sched[i] == WANTS  ? GAP_CPU :
	       did.sched[i] == SLEEPS ? GAP_OFF :
					GAP_UNKNOWN;
}

static void set(u8 *array, u32 from, u32 to, u8 value)
{
	memset(array + from, value, to - from);
}

/* A family's spans follow each other with gaps in between. */
static void add_doings(u32 pid, u32 tid)
{
	for (u32 at = pick(50), to, kind; at + 100 < SPAN; at = to) {
		to = at + 10 + pick(80);
		kind = pick(4);
		if (kind == RUNS)
			ADD(&made, sched_run, .span = SPAN_AT(pid, tid, BASE + at, BASE + to));
		if (kind == SLEEPS) {
			u32 wake = at + 1 + pick(to - at - 1);

			ADD(&made, sched_off, .span = SPAN_AT(pid, tid, BASE + at, BASE + to), .wake = BASE + wake,
			    .state = SCHED_SLEEP);
			set(did.sched, wake, to, WANTS);
			set(did.sched, at, wake, SLEEPS);
		} else if (kind == WANTS) {
			ADD(&made, sched_off, .span = SPAN_AT(pid, tid, BASE + at, BASE + to), .wake = 0,
			    .state = SCHED_RUNNABLE);
			set(did.sched, at, to, WANTS);
		} else {
			set(did.sched, at, to, kind);
		}
	}
	for (u32 at = pick(400), to; at + 100 < SPAN; at = to + pick(600)) {
		to = at + 5 + pick(60);
		ADD(&made, gil_wait, .span = SPAN_AT(pid, tid, BASE + at, BASE + to), .gil = 1, .result = 1,
		    .dropper = 9);
		set(did.gil, at, to, 1);
	}
	for (u32 at = pick(400), to; at + 100 < SPAN; at = to + pick(600)) {
		to = at + 5 + pick(60);
		ADD(&made, lock_wait, .span = SPAN_AT(pid, tid, BASE + at, BASE + to), .lock = 64, .owner = 9);
		set(did.lock, at, to, 1);
	}
	for (u32 at = pick(400), to; at + 100 < SPAN; at = to + pick(900)) {
		to = at + 5 + pick(60);
		ADD(&made, nccl_collective, .call = CALL_AT(pid, tid, BASE + at, BASE + to));
		set(did.nccl, at, to, 1);
	}
	for (u32 at = pick(400), to; at + 100 < SPAN; at = to + pick(500)) {
		to = at + 5 + pick(90);
		ADD(&made, cuda_sync,
		    .call = { .span = { .event = { .time = BASE + to, .pid = pid, .tid = tid, .probe = 1 },
					.start = BASE + at } });
		set(did.cuda, at, to, 1);
	}
	for (u32 at = pick(300), to, kind; at + 100 < SPAN; at = to + pick(300)) {
		static const s64 numbers[] = { 0, SYS_read, SYS_nanosleep, SYS_fsync };

		to = at + 5 + pick(90);
		kind = 1 + pick(3);
		ADD(&made, syscall, .call = CALL_AT(pid, tid, BASE + at, BASE + to), .nr = numbers[kind]);
		set(did.call, at, to, (u8)kind);
	}
	/* other threads don't matter */
	ADD(&made, gil_wait, .span = SPAN_AT(pid, tid + 1, BASE, BASE + SPAN), .gil = 1, .result = 1);
	ADD(&made, cuda_sync, .call = CALL_AT(pid + 1, tid, BASE, BASE + SPAN));
}

static void add_probe(u16 number, const char *name)
{
	u32 text = trace_writer__intern(made.w, name, strlen(name));

	ADD(&made, meta_probe, .name = text, .number = number, .family = 3);
}

/* A launch within a recorded call is that call. */
static bool is_in_call(u32 at)
{
	return did.cuda[at] || (at && did.cuda[at - 1]);
}

static void check_random_doings(u32 window, u32 number)
{
	u64 want[GAP_CAUSES] = { 0 }, got[GAP_CAUSES] = { 0 }, reported[GAP_CAUSES] = { 0 };
	struct gpu_report r;
	u32 at = 40;

	seed = number;
	memset(&did, 0, sizeof(did));
	memset(truth, 0, sizeof(truth));
	gpu_gaps__window = gpu_busy__window = window;
	REQUIRE(made__begin(&made));
	add_probe(1, "cudaStreamSynchronize");
	add_doings(PID, TID);
	at += pick(10);
	while (is_in_call(at))
		at++;
	add_work(PID, 0, 0, at, true, 1, 7);
	for (u32 i = 2; at + 1000 < SPAN; i++) {
		u32 gap = 20 + pick(700), launched = pick(gap), ns = 1 + pick(100);

		while (is_in_call(at + launched))
			launched--;
		while (is_in_call(at + gap + ns))
			ns++;
		/* a launch that only CUPTI reported, too short to be a part of a cause */
		ADD(&made, gpu_call, .span = SPAN_AT(PID, TID, BASE + at + launched, BASE + at + launched),
		    .call = { .function = 307, .correlation = i });
		add_work(PID, 0, at + gap, ns, true, i, 7);
		for (u32 k = 0; k < gap; k++)
			want[k < launched ? cause_at(at + k) : GAP_QUEUE]++;
		at += gap + ns;
	}
	REQUIRE(open_made());
	CHECK(!gpu_report__read(&r, &args, 1000));
	for (u32 i = 0; i < r.gaps.sums.n; i++) {
		const struct gap_sum_key *key = map__key(&r.gaps.sums, i);

		got[key->cause] += ((const struct gap_sum *)map__value(&r.gaps.sums, i))->ns;
	}
	for (u32 i = 0; i < r.gaps.n_details; i++) {
		u64 sum = 0;

		for (u32 k = 0; k < r.gaps.details[i].n; k++) {
			sum += r.gaps.details[i].parts[k].ns;
			reported[r.gaps.details[i].parts[k].cause] += r.gaps.details[i].parts[k].ns;
		}
		CHECK(sum == r.gaps.details[i].gap->to - r.gaps.details[i].gap->from);
	}
	for (u32 i = 0; i < GAP_CAUSES; i++)
		if (!CHECK(got[i] == want[i] && reported[i] == want[i]))
			printf("# %s: %llu and %llu, not %llu\n", gap_cause__key(i), got[i], reported[i], want[i]);
	gpu_report__free(&r);
	made__end(&made);
}

TEST(gaps_as_counted_by_the_nanosecond)
{
	for (u32 i = 1; i <= 20; i++)
		check_random_doings(2u << 20, i);
}

TEST(gaps_in_windows)
{
	for (u32 i = 21; i <= 26; i++)
		check_random_doings(20, i);
}

/* One gap of a thread with this activity. */
static const struct gap_detail *one_gap(struct gpu_report *r)
{
	CHECK(!gpu_report__read(r, &args, 10));
	return r->gaps.n_details == 1 ? &r->gaps.details[0] : NULL;
}

static void add_gap(u32 from, u32 launch, u32 launched, u32 to, u32 stream)
{
	ADD(&made, gpu_call, .span = SPAN_AT(PID, TID, BASE - 10, BASE - 5),
	    .call = { .function = 307, .correlation = 1 });
	add_work(PID, 0, 0, from, true, 1, stream);
	ADD(&made, gpu_call, .span = SPAN_AT(PID, TID, BASE + launch, BASE + launched),
	    .call = { .function = 307, .correlation = 2 });
	add_work(PID, 0, to, 10, true, 2, stream);
}

TEST(reports_the_devices_own_work)
{
	const struct gap_detail *t;
	struct gpu_report r;

	/* launched before the gap began */
	REQUIRE(made__begin(&made));
	add_gap(100, 20, 30, 200, 7);
	REQUIRE(open_made());
	t = one_gap(&r);
	CHECK(t && t->n == 1 && t->parts[0].cause == GAP_QUEUE && t->parts[0].ns == 100);
	gpu_report__free(&r);
	made__end(&made);
	/* this stream waits for an event, and so does another stream */
	for (u32 stream = 7; stream < 9; stream++) {
		REQUIRE(made__begin(&made));
		add_gap(100, 110, 120, 1200, 7);
		ADD(&made, gpu_sync, .span = SPAN_AT(PID, 0, BASE + 105, BASE + 106),
		    .sync = { .context = 1, .stream = stream, .kind = GPU_SYNC_STREAM_WAIT_EVENT });
		REQUIRE(open_made());
		t = one_gap(&r);
		CHECK(t && t->n == 3 && t->parts[0].cause == (stream == 7 ? GAP_EVENT : GAP_QUEUE) &&
		      t->parts[0].ns == 1080);
		/* within the call that only CUPTI reported, and before it */
		CHECK(t && t->parts[1].cause == GAP_CUDA && t->parts[1].ns == 10 && t->parts[2].cause == GAP_UNKNOWN &&
		      t->parts[2].ns == 10);
		gpu_report__free(&r);
		made__end(&made);
	}
}

/* Times have the clock's error: work that overlaps by less ran one after the other. */
TEST(overlaps_by_more_than_the_clocks_error)
{
	struct gpu_device_key key = { PID, 0 };
	const struct gpu_device_sum *d;
	struct gpu_busy b;

	for (u32 by = 100; by <= 101; by++) {
		REQUIRE(made__begin(&made));
		ADD(&made, gpu_clock, .event = EVENT_AT(PID, 0, BASE), .clock = { .error = 100 });
		add_work(PID, 0, 0, 1000, true, 0, 7);
		add_work(PID, 0, 1000 - by, 1000, true, 0, 7);
		REQUIRE(open_made());
		REQUIRE(!gpu_busy__read(&b, &args, NULL, NULL));
		d = map__find(&b.devices, &key);
		CHECK(d && d->deepest == (by > 100 ? 2 : 1) && d->kernel_ns == 2000 - by);
		gpu_busy__free(&b);
		made__end(&made);
	}
}

TEST(states_nothing_without_device_times)
{
	struct report_output out = { .name = "gpu" };
	struct gpu_report r;

	REQUIRE(made__begin(&made));
	for (u32 i = 0; i < 10; i++)
		ADD(&made, cuda_launch, .call = CALL_AT(PID, TID, BASE + 100 * i, BASE + 100 * i + 7));
	REQUIRE(open_made());
	CHECK(!gpu_report__read(&r, &args, 10));
	CHECK(!r.busy.devices.n && !r.gaps.n_details && r.busy.host_work.n == 1);
	if (r.busy.host_work.n)
		CHECK(((const struct gpu_host_work *)map__value(&r.busy.host_work, 0))->kernels == 10 &&
		      ((const struct gpu_host_work *)map__value(&r.busy.host_work, 0))->ns == 70);
	CHECK(!findings__add_about(&(struct finding_input){ .q = &args, .gaps = &r.gaps }, findings__find_gpu, &out));
	gpu_report__add_host_findings(&r, &out);
	CHECK(out.n_findings == 1 && strstr(out.findings[0].text, "not known") &&
	      !strstr(out.findings[0].text, "busy"));
	report_output__free(&out);
	gpu_report__free(&r);
	made__end(&made);
}

TEST_MAIN()
