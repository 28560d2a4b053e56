// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* One line per thread: its main activity in each of sixty parts of the time; and one per GPU: how busy it was. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/activity.h"
#include "model/gpu_busy.h"
#include "output/text.h"
#include "report/report.h"

#define BINS 60
/* What a part of the time can hold */
enum {
	MARK_RUN,
	MARK_CPU,
	MARK_GIL,
	MARK_LOCK,
	MARK_NCCL,
	MARK_LIBRARY,
	MARK_CALL,
	MARK_DISK,
	MARK_IDLE,
	MARK_ASLEEP,
	MARKS
};

struct line {
	u64 run_ns, known_ns;
	u64 ns[BINS][MARKS];
};

struct timeline {
	struct activity *activity;
	u64 from, width; /* ns: where the first part begins, and how long each is */
	struct map lines; /* struct thread_key -> struct line */
	struct thread_key last; /* intervals arrive thread by thread: the current thread's line */
	struct line *line;
	struct gpu_busy busy;
	struct map devices; /* u32 index in busy's devices -> u64[BINS], ns */
};

static const u8 mark_of[ACTIVITY_CAUSES] = {
	[ACTIVITY_ON_CPU] = MARK_RUN,
	[ACTIVITY_CPU] = MARK_CPU,
	[ACTIVITY_QUOTA] = MARK_CPU,
	[ACTIVITY_GIL] = MARK_GIL,
	[ACTIVITY_LOCK] = MARK_LOCK,
	[ACTIVITY_CONDITION] = MARK_IDLE,
	[ACTIVITY_NCCL] = MARK_NCCL,
	[ACTIVITY_CUDA] = MARK_LIBRARY,
	[ACTIVITY_CUDA_SYNC] = MARK_LIBRARY,
	[ACTIVITY_GC] = MARK_LIBRARY,
	[ACTIVITY_LIBRARY] = MARK_LIBRARY,
	[ACTIVITY_DISK] = MARK_DISK,
	[ACTIVITY_FAULT] = MARK_DISK,
	[ACTIVITY_RECLAIM] = MARK_DISK,
	[ACTIVITY_CONNECT] = MARK_CALL,
	[ACTIVITY_SLEEP] = MARK_CALL,
	[ACTIVITY_EVENTS] = MARK_IDLE,
	[ACTIVITY_FUTEX] = MARK_CALL,
	[ACTIVITY_SEND] = MARK_CALL,
	[ACTIVITY_RECEIVE] = MARK_CALL,
	[ACTIVITY_SYNC] = MARK_CALL,
	[ACTIVITY_TRANSFER] = MARK_CALL,
	[ACTIVITY_SYSCALL] = MARK_CALL,
	[ACTIVITY_ASLEEP] = MARK_ASLEEP,
	[ACTIVITY_UNINTERRUPTIBLE] = MARK_DISK,
	[ACTIVITY_STOPPED] = MARK_ASLEEP,
};

static int on_interval(const struct activity_interval *i, void *arg)
{
	struct timeline *t = arg;
	u32 mark = mark_of[i->cause];
	struct line *line = t->line;

	if (i->state == ACTIVITY_UNKNOWN)
		return 0;
	if (!line || i->thread.tid != t->last.tid || i->thread.pid != t->last.pid)
		line = t->line = map__get(&t->lines, &i->thread);
	if (!line)
		return -ENOMEM;
	t->last = i->thread;
	line->known_ns += i->to - i->from;
	line->run_ns += mark == MARK_RUN ? i->to - i->from : 0;
	for (u64 from = i->from < t->from ? t->from : i->from; from < i->to;) {
		u64 bin = (from - t->from) / t->width, end = t->from + (bin + 1) * t->width;

		if (bin >= BINS)
			break;
		if (end > i->to)
			end = i->to;
		line->ns[bin][mark] += end - from;
		from = end;
	}
	return 0;
}

static int on_busy(u32 device, u64 from, u64 to, void *arg)
{
	struct timeline *t = arg;
	u64 *ns = map__get(&t->devices, &device);

	if (!ns)
		return -ENOMEM;
	for (from = from < t->from ? t->from : from; from < to;) {
		u64 bin = (from - t->from) / t->width, end = t->from + (bin + 1) * t->width;

		if (bin >= BINS)
			break;
		end = end < to ? end : to;
		ns[bin] += end - from;
		from = end;
	}
	return 0;
}

/* By the share of the part */
static const char *bar(u64 ns, u64 width)
{
	static const char *const bars[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	u32 i = (u32)(8 * ns / width);

	return bars[i > 7 ? 7 : i];
}

static void trim(char *strip)
{
	for (size_t len = strlen(strip); len && strip[len - 1] == ' '; len--)
		strip[len - 1] = '\0';
}

/* The character for the activity that fills most of a part; running is a bar. */
static const char *cell(const u64 *ns, u64 width)
{
	static const char letters[][2] = { "", "w", "g", "l", "n", "c", "s", "d", "i", "." };
	u32 best = 0, i;

	for (i = 1; i < MARKS; i++)
		if (ns[i] > ns[best])
			best = i;
	if (!ns[best])
		return " ";
	if (best)
		return letters[best];
	return bar(ns[0], width);
}

/* Blank before the first work and after the last; in between a dot where the GPU was idle. */
static const char *device_cell(const struct timeline *t, const struct gpu_device_sum *d, u32 bin, u64 ns)
{
	u64 from = t->from + bin * t->width;

	if (ns)
		return bar(ns, t->width);
	return from + t->width <= d->first || from >= d->last ? " " : ".";
}

static const struct column device_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "device", "GPU", VALUE_U64, SHOW_PLAIN },
	{ "busy_percent", "Busy (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "time_ns", "Time", VALUE_U64, SHOW_NEVER },
	{ "busy_ns", "Busy", VALUE_U64, SHOW_NEVER },
	{ "strip", "From the start to the end", VALUE_TEXT, SHOW_PLAIN },
};

static const struct column device_bin_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "device", "GPU", VALUE_U64, SHOW_PLAIN },
	{ "from_ns", "From", VALUE_S64, SHOW_SECONDS },
	{ "busy_ns", "Busy", VALUE_U64, SHOW_NS },
};

static void fill_devices(const struct timeline *t, const struct query *args, struct table *table, struct table *bins)
{
	bins->machine_only = true;
	for (u32 i = 0; i < t->busy.devices.n; i++) {
		const struct gpu_device_key *k = gpu_busy__key(&t->busy, i);
		const struct gpu_device_sum *d = gpu_busy__sum(&t->busy, i);
		const u64 *ns = map__find(&t->devices, &i);
		char strip[4 * BINS + 1] = "";

		if (!gpu_device__time(d))
			continue;
		for (u32 bin = 0; bin < BINS; bin++) {
			strcat(strip, device_cell(t, d, bin, ns ? ns[bin] : 0));
			table__add(bins, V_U64(k->pid), V_U64(k->device),
				   report__moment(args, t->from + bin * t->width), V_U64(ns ? ns[bin] : 0));
		}
		trim(strip);
		table__add(table, V_U64(k->pid), V_TEXT(names__comm(args->names, k->pid, 0)), V_U64(k->device),
			   V_DBL(table__percent(d->busy_ns, gpu_device__time(d))), V_U64(gpu_device__time(d)),
			   V_U64(d->busy_ns), V_TEXT(strip));
	}
	table__sort(table, "busy_ns");
}

static const struct column columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Thread", VALUE_TEXT, SHOW_PLAIN },
	{ "run_percent", "On CPU (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "known_ns", "Time", VALUE_U64, SHOW_NEVER },
	{ "run_ns", "On CPU", VALUE_U64, SHOW_NEVER },
	{ "strip", "From the start to the end", VALUE_TEXT, SHOW_PLAIN },
};

static void fill(const struct timeline *t, const struct query *args, struct table *table)
{
	for (u32 i = 0; i < t->lines.n; i++) {
		const struct thread_key *k = map__key(&t->lines, i);
		const struct line *line = map__value(&t->lines, i);
		char strip[4 * BINS + 1] = "";

		for (u32 bin = 0; bin < BINS; bin++)
			strcat(strip, cell(line->ns[bin], t->width));
		trim(strip);
		table__add(table, V_U64(k->pid), V_U64(k->tid), V_TEXT(names__comm(args->names, k->pid, k->tid)),
			   V_DBL(table__percent(line->run_ns, line->known_ns)), V_U64(line->known_ns),
			   V_U64(line->run_ns), V_TEXT(strip));
	}
	table__sort(table, "run_ns");
}

static const struct column bin_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },	   { "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "from_ns", "From", VALUE_S64, SHOW_SECONDS },	   { "run_ns", "On CPU", VALUE_U64, SHOW_NS },
	{ "runnable_ns", "Runnable", VALUE_U64, SHOW_NS }, { "gil_ns", "GIL", VALUE_U64, SHOW_NS },
	{ "lock_ns", "Locks", VALUE_U64, SHOW_NS },	   { "nccl_ns", "NCCL", VALUE_U64, SHOW_NS },
	{ "library_ns", "Libraries", VALUE_U64, SHOW_NS }, { "syscall_ns", "System calls", VALUE_U64, SHOW_NS },
	{ "blocked_ns", "Blocked", VALUE_U64, SHOW_NS },   { "idle_ns", "Idle", VALUE_U64, SHOW_NS },
	{ "sleep_ns", "Asleep", VALUE_U64, SHOW_NS },
};

/* For CSV and JSON: the times behind the characters. */
static void fill_bins(const struct timeline *t, const struct query *args, struct table *table)
{
	table->machine_only = true;
	for (u32 i = 0; i < t->lines.n; i++) {
		const struct thread_key *k = map__key(&t->lines, i);
		const struct line *line = map__value(&t->lines, i);

		for (u32 bin = 0; bin < BINS; bin++) {
			const u64 *ns = line->ns[bin];

			table__add(table, V_U64(k->pid), V_U64(k->tid), report__moment(args, t->from + bin * t->width),
				   V_U64(ns[0]), V_U64(ns[1]), V_U64(ns[2]), V_U64(ns[3]), V_U64(ns[4]), V_U64(ns[5]),
				   V_U64(ns[6]), V_U64(ns[7]), V_U64(ns[8]), V_U64(ns[9]));
		}
	}
}

static int run_devices(struct timeline *t, const struct query *args, struct report_output *out)
{
	struct table *devices, *bins;
	int err = gpu_busy__read(&t->busy, args, on_busy, t);

	if (!err && t->busy.devices.n) {
		devices = REPORT_TABLE(out, "devices", "GPUs over time", device_columns);
		bins = REPORT_TABLE(out, "device_parts", "Parts of the GPUs' time", device_bin_columns);
		fill_devices(t, args, devices, bins);
		report_output__note(out, "Of a GPU: ▁ to █ busy, . idle.");
	}
	gpu_busy__free(&t->busy);
	return err;
}

static int run(const struct query *args, struct report_output *out)
{
	struct table *lines = REPORT_TABLE(out, "threads", "Threads over time", columns);
	struct table *bins = REPORT_TABLE(out, "parts", "Parts of the time", bin_columns);
	struct trace_window w = query__window(args);
	struct timeline t = { .from = w.from, .width = (w.to - w.from) / BINS + 1 };
	char width[TEXT_NUMBER];
	int err = activity__new(&t.activity, args, 0);

	lines->limit = 40;
	map__init(&t.lines, sizeof(struct thread_key), sizeof(struct line));
	map__init(&t.devices, sizeof(u32), BINS * sizeof(u64));
	if (!err)
		err = activity__read(t.activity, on_interval, &t);
	fill(&t, args, lines);
	fill_bins(&t, args, bins);
	if (!t.lines.n)
		report__nothing(args, out, "No scheduling was recorded", "sched");
	else
		report_output__note(
			out,
			"Each character is %s: what fills most of it. ▁ to █ on a CPU; waiting: w for a CPU, "
			"g for the GIL, l for a lock, n in NCCL, c in CUDA or another library, s in a system "
			"call, d for a disk, i idle (for something to do), . asleep.",
			text__ns(width, sizeof(width), t.width));
	if (!err)
		err = run_devices(&t, args, out);
	map__free(&t.lines);
	map__free(&t.devices);
	activity__free(t.activity);
	return err;
}

REPORT(timeline) = {
	.name = "timeline",
	.doc = "a line a thread: what it did in each part of the time",
	.kinds = "sched_run,sched_off",
	.run = run,
};
