// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report timeline: a line for each thread with its main activity in sixty parts of the time, and for each GPU. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "findings/findings.h"
#include "model/gpu_busy.h"
#include "output/text.h"
#include "report/report.h"
#include "util/array.h"

#define BINS 60

struct bin {
	u64 ns[FINDING_COLOURS];
};

/* In a trace with many threads most live only briefly, so a line stores only the bins from `first` on. */
struct line {
	u64 run_ns, known_ns;
	struct bin *bins; /* n, from `first` on */
	u32 first, n;
};

struct timeline {
	struct findings *findings;
	u64 from, width; /* ns: start of the first part, length of each */
	struct map lines; /* struct thread_key -> struct line */
	struct thread_key last; /* intervals arrive thread by thread: the current thread's line */
	struct line *line;
	struct gpu_busy busy;
	struct map devices; /* u32 index in busy's devices -> u64[BINS], ns */
};

/* Intervals arrive in order of time, so the bin exists already or follows the last one. */
static u64 *bin_of(struct line *l, u64 bin)
{
	static const struct bin empty;

	if (!l->n)
		l->first = (u32)bin;
	bin = bin < l->first ? l->first : bin;
	while (l->first + l->n <= bin)
		if (!array__push(l->bins, l->n, empty))
			return NULL;
	return l->bins[bin - l->first].ns;
}

static const u64 *ns_of(const struct line *l, u32 bin)
{
	static const struct bin empty;

	return bin >= l->first && bin < l->first + l->n ? l->bins[bin - l->first].ns : empty.ns;
}

static int on_interval(const struct activity_interval *i, void *arg)
{
	struct timeline *t = arg;
	struct line *line = t->line;
	enum finding_colour colour;

	if (i->state == ACTIVITY_UNKNOWN)
		return 0;
	colour = findings__colour(t->findings, i);
	if (!line || i->thread.tid != t->last.tid || i->thread.pid != t->last.pid)
		line = t->line = map__get(&t->lines, &i->thread);
	if (!line)
		return -ENOMEM;
	t->last = i->thread;
	line->known_ns += i->to - i->from;
	line->run_ns += colour == COLOUR_RUN ? i->to - i->from : 0;
	for (u64 from = i->from < t->from ? t->from : i->from; from < i->to;) {
		u64 bin = (from - t->from) / t->width, end = t->from + (bin + 1) * t->width;
		u64 *ns = bin < BINS ? bin_of(line, bin) : NULL;

		if (bin >= BINS)
			break;
		if (!ns)
			return -ENOMEM;
		if (end > i->to)
			end = i->to;
		ns[colour] += end - from;
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

/* Returns a bar for the share of a part. */
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

/* Returns the character for the activity that fills most of a part; running is a bar. */
static const char *cell(const u64 *ns, u64 width)
{
	enum finding_colour best = COLOUR_RUN;

	for (enum finding_colour i = best + 1; i < FINDING_COLOURS; i++)
		if (ns[i] > ns[best])
			best = i;
	if (!ns[best])
		return " ";
	return best == COLOUR_RUN ? bar(ns[best], width) : finding_colour__text(best)->letter;
}

/* Returns a blank before the first and after the last work, and a dot while the GPU was idle in between. */
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
	{ "wall_ns", "Time", VALUE_U64, SHOW_NEVER },
	{ "busy_ns", "Busy", VALUE_U64, SHOW_NEVER },
	{ "strip", "From the start to the end", VALUE_TEXT, SHOW_STRIP },
};

static const struct column device_bin_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "device", "GPU", VALUE_U64, SHOW_PLAIN },
	{ "from_ns", "From", VALUE_S64, SHOW_SECONDS },
	{ "busy_ns", "Busy", VALUE_U64, SHOW_NS },
};

static void fill_devices(const struct timeline *t, const struct query *args, struct table *table, struct table *bins)
{
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
		table__add(table, V_U64(k->pid), V_TEXT(NAMES_TITLE(args->names, k->pid, 0)), V_U64(k->device),
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
	{ "wall_ns", "Time", VALUE_U64, SHOW_NEVER },
	{ "run_ns", "On CPU", VALUE_U64, SHOW_NEVER },
	{ "strip", "From the start to the end", VALUE_TEXT, SHOW_STRIP },
};

static void fill(const struct timeline *t, const struct query *args, struct table *table)
{
	MAP_EACH_ENTRY(const struct line *line, const struct thread_key *k, &t->lines) {
		char strip[4 * BINS + 1] = "";

		for (u32 bin = 0; bin < BINS; bin++)
			strcat(strip, cell(ns_of(line, bin), t->width));
		trim(strip);
		table__add(table, V_U64(k->pid), V_U64(k->tid), V_TEXT(NAMES_TITLE(args->names, k->pid, k->tid)),
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

/* Adds the times behind the characters, for CSV and JSON. */
static void fill_bins(const struct timeline *t, const struct query *args, struct table *table)
{
	MAP_EACH_ENTRY(const struct line *line, const struct thread_key *k, &t->lines) {
		for (u32 bin = 0; bin < BINS; bin++) {
			const u64 *ns = ns_of(line, bin);

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
		bins = REPORT_MACHINE_TABLE(out, "device_parts", "Parts of the GPUs' time", device_bin_columns);
		fill_devices(t, args, devices, bins);
		report_output__note(out, "In the rows of GPUs: ▁ to █ busy, . idle.");
	}
	gpu_busy__free(&t->busy);
	return err;
}

static void add_legend(const struct timeline *t, struct report_output *out)
{
	char text[512];
	struct text_buffer s = { .buf = text, .size = sizeof(text) };

	text__add(&s, "Each character stands for %s, and shows what filled most of it: ▁ to █ %s", TEXT_NS(t->width),
		  finding_colour__text(COLOUR_RUN)->phrase);
	for (enum finding_colour i = COLOUR_RUN + 1; i < FINDING_COLOURS; i++)
		text__add(&s, ", %s %s", finding_colour__text(i)->letter, finding_colour__text(i)->phrase);
	report_output__note(out, "%s.", text);
}

static void free_lines(struct timeline *t)
{
	for (u32 i = 0; i < t->lines.n; i++)
		free(((struct line *)map__value(&t->lines, i))->bins);
	map__free(&t->lines);
}

static int run(const struct query *args, struct report_output *out)
{
	struct table *lines = REPORT_TABLE(out, "threads", "Threads over time", columns);
	struct table *bins = REPORT_MACHINE_TABLE(out, "parts", "Parts of the time", bin_columns);
	struct trace_window w = query__window(args);
	struct timeline t = { .from = w.from, .width = (w.to - w.from) / BINS + 1 };
	int err = findings__read(&t.findings, args, NULL);

	lines->limit = 40;
	map__init(&t.lines, sizeof(struct thread_key), sizeof(struct line));
	map__init(&t.devices, sizeof(u32), BINS * sizeof(u64));
	if (!err)
		err = activity__read(findings__activity(t.findings), on_interval, &t);
	fill(&t, args, lines);
	fill_bins(&t, args, bins);
	if (!t.lines.n)
		report__nothing(args, out, "No scheduling was recorded", "sched");
	else
		add_legend(&t, out);
	if (!err)
		err = run_devices(&t, args, out);
	free_lines(&t);
	map__free(&t.devices);
	findings__free(t.findings);
	return err;
}

REPORT(timeline) = {
	.name = "timeline",
	.doc = "a line for each thread: what it did in each part of the time",
	.kinds = "sched_run,sched_off",
	.run = run,
};
