// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report timeline: a line for each thread with its main activity in sixty parts of the time, and for each GPU. */
#include <errno.h>
#include <string.h>

#include "findings/findings.h"
#include "model/gpu_busy.h"
#include "output/text.h"
#include "report/report.h"

#define BINS 60

struct timeline {
	struct findings *findings;
	u64 from, width; /* ns: start of the first part, length of each */
	struct gpu_busy busy;
	struct map devices; /* u32 index in busy's devices -> u64[BINS], ns */
};

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

static const struct column bin_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },	   { "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "from_ns", "From", VALUE_S64, SHOW_SECONDS },	   { "run_ns", "On CPU", VALUE_U64, SHOW_NS },
	{ "runnable_ns", "Runnable", VALUE_U64, SHOW_NS }, { "gil_ns", "GIL", VALUE_U64, SHOW_NS },
	{ "lock_ns", "Locks", VALUE_U64, SHOW_NS },	   { "nccl_ns", "NCCL", VALUE_U64, SHOW_NS },
	{ "library_ns", "Libraries", VALUE_U64, SHOW_NS }, { "syscall_ns", "System calls", VALUE_U64, SHOW_NS },
	{ "blocked_ns", "Blocked", VALUE_U64, SHOW_NS },   { "idle_ns", "Idle", VALUE_U64, SHOW_NS },
	{ "sleep_ns", "Asleep", VALUE_U64, SHOW_NS },
};

/* The times of a thread: in all, and by colour in each part */
struct line {
	u64 run, known;
	u64 ns[BINS][FINDING_COLOURS];
};

static void add_cell(struct line *l, const struct profile_cell *c)
{
	enum finding_colour colour = findings__colour(c);

	for (u32 i = 0; i < c->n_parts; i++) {
		l->ns[c->first + i][colour] += c->parts[i];
		l->known += c->parts[i];
		l->run += colour == COLOUR_RUN ? c->parts[i] : 0;
	}
}

/* Adds the line as characters for people, its times to `bins`. */
static void add_line(const struct timeline *t, const struct query *args, const struct thread_key *k,
		     const struct line *l, struct table *threads, struct table *bins)
{
	char strip[4 * BINS + 1] = "", *end = strip;

	for (u32 bin = 0; bin < BINS; bin++) {
		const u64 *ns = l->ns[bin];

		end = stpcpy(end, cell(ns, t->width));
		table__add(bins, V_U64(k->pid), V_U64(k->tid), report__moment(args, t->from + bin * t->width),
			   V_U64(ns[0]), V_U64(ns[1]), V_U64(ns[2]), V_U64(ns[3]), V_U64(ns[4]), V_U64(ns[5]),
			   V_U64(ns[6]), V_U64(ns[7]), V_U64(ns[8]), V_U64(ns[9]));
	}
	trim(strip);
	table__add(threads, V_U64(k->pid), V_U64(k->tid), V_TEXT(NAMES_TITLE(args->names, k->pid, k->tid)),
		   V_DBL(table__percent(l->run, l->known)), V_U64(l->known), V_U64(l->run), V_TEXT(strip));
}

static void fill(const struct timeline *t, const struct query *args, struct table *threads, struct table *bins)
{
	const struct profile *p = findings__input(t->findings)->profile;

	MAP_EACH_ENTRY(const struct profile_thread *thread, const struct thread_key *k, &p->threads) {
		struct line l = { 0 };

		for (u32 i = thread->cells; i; i = profile__cell(p, i - 1)->next)
			if (profile__key(p, i - 1)->state != ACTIVITY_UNKNOWN)
				add_cell(&l, profile__cell(p, i - 1));
		if (l.known)
			add_line(t, args, k, &l, threads, bins);
	}
	table__sort(threads, "run_ns");
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

static int run(const struct query *args, struct report_output *out)
{
	struct table *lines = REPORT_TABLE(out, "threads", "Threads over time", columns);
	struct table *bins = REPORT_MACHINE_TABLE(out, "parts", "Parts of the time", bin_columns);
	struct trace_window w = query__window(args);
	struct timeline t = { .from = w.from, .width = (w.to - w.from) / BINS + 1 };
	int err = findings__read_colours(&t.findings, args, BINS);

	lines->limit = 40;
	map__init(&t.devices, sizeof(u32), BINS * sizeof(u64));
	if (!err)
		fill(&t, args, lines, bins);
	if (!lines->n_rows)
		report__nothing(args, out, "No scheduling was recorded", "sched");
	else
		add_legend(&t, out);
	if (!err)
		err = run_devices(&t, args, out);
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
