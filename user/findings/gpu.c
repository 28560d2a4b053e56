// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How busy each GPU was, what the launching thread did while it was idle, and which kernel took most of its time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings/about.h"
#include "findings/compute.h"
#include "model/gpu_gaps.h"
#include "model/nccl_calls.h"
#include "output/table.h"
#include "output/text.h"
#include "util/array.h"

/* Devices with a finding of their own, those with most time */
#define DEVICES_MAX 4

/* A GPU that works for at least this part of its time limits its program: this outweighs what its threads do. */
#define USED_PART   20
#define USED_WEIGHT 1.2
/* A GPU with less work mostly waits for something to do. */
#define UNUSED_WEIGHT 0.5
/* After its last work, a GPU is hung or no longer needed. */
#define ENDED_WEIGHT  0.5
#define KERNEL_WEIGHT 0.8

/* A GPU that is busy for this part of its time is what the program waits for. */
#define BUSY_PERCENT 90
/* Gaps that are shorter, ns, are those between two launches, if there are so many. */
#define LAUNCH_GAP	100000u
#define LAUNCH_GAPS_MIN 1000u

/* One cause of a device's idle time, and the object with the largest part (main_ns) of it. */
struct cause_total {
	u64 ns;
	u64 main_ns;
	u32 object;
};

static u64 sum_causes(const struct gpu_gaps *g, u32 device, struct cause_total *totals)
{
	u64 idle = 0;

	memset(totals, 0, GAP_CAUSES * sizeof(*totals));
	MAP_EACH_ENTRY(const struct gap_sum *s, const struct gap_sum_key *key, &g->sums) {
		struct cause_total *t = &totals[key->cause];

		if (key->device != device)
			continue;
		idle += s->ns;
		t->ns += s->ns;
		if (s->ns > t->main_ns) {
			t->main_ns = s->ns;
			t->object = key->object;
		}
	}
	return idle;
}

static u32 largest(const struct cause_total *totals)
{
	u32 best = 0;

	for (u32 i = 1; i < GAP_CAUSES; i++)
		if (totals[i].ns > totals[best].ns)
			best = i;
	return best;
}

/* Returns the number of processes with devices. */
static u32 processes_of(const struct gpu_busy *b)
{
	u32 n = 0, k;

	for (u32 i = 0; i < b->devices.n; i++) {
		for (k = 0; k < i && gpu_busy__key(b, k)->pid != gpu_busy__key(b, i)->pid; k++)
			;
		n += k == i;
	}
	return n;
}

static struct finding *add(const struct gpu_gaps *g, struct findings *out, enum finding_kind kind, u32 device)
{
	const struct gpu_device_key *k = gpu_busy__key(g->busy, device);
	struct finding *f = findings__add(out, kind);

	if (!f)
		return NULL;
	f->pid = k->pid;
	f->device = k->device;
	f->has_device = true;
	f->processes = 1;
	snprintf(f->report, sizeof(f->report), "gpu");
	return f;
}

/* Adds what the launching thread did in most of the idle time, unless that is not known. */
static void add_cause(const struct gpu_gaps *g, struct finding *f, const struct cause_total *totals, u64 idle)
{
	u32 cause = largest(totals);
	const struct cause_total *t = &totals[cause];
	struct text_buffer s = { .buf = f->counterpart.activity, .size = sizeof(f->counterpart.activity) };
	char did[TEXTS_LEN + 96];

	/* add_unrecorded covers unknown causes, for all devices together */
	if (!idle || cause == GAP_UNKNOWN)
		return;
	text__add(&s, "%s", gap_cause__text(cause, texts__text(&g->texts, t->object), did, sizeof(did)));
	if (t->main_ns < t->ns - t->ns / 10)
		text__add(&s, " for %.0f%% of that", table__percent(t->main_ns, t->ns));
	f->counterpart.pid = f->pid;
	f->counterpart.percent = table__percent(t->ns, idle);
}

/* threads: u32 tid -> u64 ns. Returns the thread with most; 0: none has any. */
static u32 launching_thread(const struct map *threads)
{
	u64 most = 0;
	u32 tid = 0;

	MAP_EACH_ENTRY(const u64 *ns, const u32 *key, threads) {
		if (*ns <= most)
			continue;
		most = *ns;
		tid = *key;
	}
	return tid;
}

/* Adds the code that the threads ran for which the device waited: of the one with most idle time that has code. */
static void add_code(const struct finding_input *in, struct finding *f, u32 device)
{
	const struct gpu_busy *b = in->gaps->busy;
	struct map threads; /* u32 tid -> u64 idle ns */
	u32 tid;

	map__init(&threads, sizeof(u32), sizeof(u64));
	for (u32 i = 0; i < b->n_gaps; i++) {
		const struct gpu_gap *g = &b->gaps[i];
		u64 *ns = g->device == device && g->tid && !g->tail ? map__get(&threads, &g->tid) : NULL;

		if (ns)
			*ns += g->to - g->from;
	}
	while (!*f->code.function && (tid = launching_thread(&threads)) != 0) {
		struct computed c;

		computed__of_thread(&c, in, (struct thread_key){ f->pid, tid });
		if (c.samples)
			finding_code__fill(&f->code, in->stacks, c.stack);
		*(u64 *)map__find(&threads, &tid) = 0;
	}
	map__free(&threads);
}

/* Adds that the device waits for one launch after the other, if most of its idle time is in gaps as long as these. */
static void add_short_gaps(const struct gpu_gaps *g, struct finding *f, u32 device)
{
	const struct gpu_device_sum *d = gpu_busy__sum(g->busy, device);
	u64 ns = d->short_ns, n = d->short_gaps;

	for (u32 i = 0; i < g->busy->n_gaps; i++) {
		const struct gpu_gap *gap = &g->busy->gaps[i];

		if (gap->device != device || gap->tail || gap->to - gap->from >= LAUNCH_GAP)
			continue;
		ns += gap->to - gap->from;
		n++;
	}
	if (n < LAUNCH_GAPS_MIN || 2 * ns < f->lost_ns || !d->kernels)
		return;
	snprintf(f->detail, sizeof(f->detail),
		 "%.0f%% of its idle time is %s gaps of %s between kernels of %s: it waits for launches",
		 table__percent(ns, f->lost_ns), TEXT_COUNT(n), TEXT_NS(ns / n), TEXT_NS(d->kernel_ns / d->kernels));
	snprintf(f->advice, sizeof(f->advice), "%s",
		 "Larger or fused kernels (`torch.compile`) and CUDA graphs need fewer launches.");
}

/* Adds what keeps the device busy. */
static void add_work(struct finding *f, const struct gpu_device_sum *d)
{
	u64 copied = d->copy_ns - d->both_ns;

	if (2 * copied > d->busy_ns)
		snprintf(f->detail, sizeof(f->detail), "for %.0f%% of that it only copied",
			 table__percent(copied, d->busy_ns));
	else
		snprintf(f->detail, sizeof(f->detail), "the program waits for it");
}

static void add_device(const struct finding_input *in, struct findings *out, u32 device)
{
	const struct gpu_gaps *g = in->gaps;
	const struct gpu_device_sum *d = gpu_busy__sum(g->busy, device);
	struct finding *f = add(g, out, FINDING_GPU_IDLE, device);
	struct cause_total totals[GAP_CAUSES];
	u64 idle = sum_causes(g, device, totals);

	if (!f)
		return;
	f->lost_ns = gpu_device__idle(d);
	f->wall_ns = gpu_device__time(d);
	f->times = d->gaps;
	if (d->busy_ns >= f->wall_ns / USED_PART)
		f->weight = USED_WEIGHT * (double)f->wall_ns;
	else
		f->weight = UNUSED_WEIGHT * (double)f->lost_ns;
	if (100 * d->busy_ns >= BUSY_PERCENT * f->wall_ns) {
		add_work(f, d);
		return;
	}
	add_cause(g, f, totals, idle);
	if (in->profile && IS_ONE_OF(largest(totals), GAP_PYTHON, GAP_RUN, GAP_CUDA))
		add_code(in, f, device);
	add_short_gaps(g, f, device);
}

/* Copies the name of the NCCL call that made the launch, or else of CUDA's function, to f->call. */
static void name_launch(const struct query *q, struct finding *f, const struct gpu_unended *u)
{
	struct nccl_calls calls;
	const char *name = u->function;
	int err = nccl_calls__read(&calls, q);

	for (u32 i = 0; !err && i < calls.n_ops; i++)
		if (calls.ops[i].pid == f->pid && calls.ops[i].start <= u->start && calls.ops[i].end >= u->end)
			name = nccl_calls__function_name(&calls, calls.ops[i].function);
	snprintf(f->call, sizeof(f->call), "%s", name ? name : "an unknown function");
	nccl_calls__free(&calls);
}

/*
 * CUPTI reports work when it has ended. So if launches without a record follow, and the process runs on without a lost
 * record, their work hangs, or waits for work that does. Of a process with several devices, which one is not known.
 */
static void add_unended(const struct query *q, struct finding *f, const struct gpu_busy *b, const struct gpu_gap *tail)
{
	const struct gpu_unended *u = gpu_model__unended(b->model, f->pid);
	const struct task *task = names__task(q->names, f->pid, 0);
	u32 devices = 0;

	for (u32 i = 0; i < b->devices.n; i++)
		devices += gpu_busy__key(b, i)->pid == f->pid;
	if (!u || devices != 1 || (task && task->end) || b->coverage.dropped ||
	    u->end > tail->from + (tail->to - tail->from) / 2)
		return;
	f->times = u->launches;
	name_launch(q, f, u);
}

/*
 * Adds a finding on a device without work until the end, because it hangs or the program no longer uses it: what did
 * the thread do that launched its last work?
 */
static void add_tail(const struct query *q, const struct gpu_gaps *g, struct findings *out, u32 device)
{
	const struct gap_detail *t = map__find(&g->tails, &device);
	struct finding *f = t && t->n ? add(g, out, FINDING_GPU_ENDED, device) : NULL;

	if (!f)
		return;
	f->lost_ns = f->wall_ns = t->gap->to - t->gap->from;
	f->weight = ENDED_WEIGHT * (double)f->lost_ns;
	add_unended(q, f, g->busy, t->gap);
	if (t->parts[0].cause == GAP_UNKNOWN)
		return;
	gap_cause__text(t->parts[0].cause, texts__text(&g->texts, t->parts[0].object), f->counterpart.activity,
			sizeof(f->counterpart.activity));
	f->counterpart.pid = f->pid;
	f->counterpart.tid = t->gap->tid;
	f->counterpart.percent = table__percent(t->parts[0].ns, f->lost_ns);
}

/* Adds a finding on the families that would have recorded what is unknown. */
static void add_unrecorded(const struct finding_input *in, struct findings *out)
{
	const struct gpu_gaps *g = in->gaps;
	u64 idle = 0, unknown = 0, off = 0, runs = 0, ns;
	struct cause_total totals[GAP_CAUSES];
	struct finding *f;

	for (u32 i = 0; i < g->busy->devices.n; i++) {
		idle += sum_causes(g, i, totals);
		unknown += totals[GAP_UNKNOWN].ns;
		off += totals[GAP_OFF].ns;
		runs += totals[GAP_RUN].ns;
	}
	/* if there are samples, the time is in gaps that are shorter than the time between two */
	if (query__has_family(in->q, "sample"))
		runs = 0;
	ns = unknown > idle / 5 ? unknown : off > idle / 5 ? off : runs;
	f = ns > idle / 5 ? findings__add(out, FINDING_UNRECORDED) : NULL;
	if (!f)
		return;
	f->is_notice = true;
	f->processes = processes_of(g->busy);
	f->pid = gpu_busy__key(g->busy, 0)->pid;
	f->lost_ns = ns;
	f->wall_ns = idle;
	snprintf(f->object, sizeof(f->object), "the GPUs' idle time");
	snprintf(f->report, sizeof(f->report), "gpu");
	snprintf(f->detail, sizeof(f->detail), "the launching threads %s",
		 ns == unknown ? "did something that was not recorded" :
		 ns == off     ? "waited for something that was not recorded" :
				 "ran code that has no name in this trace");
	snprintf(f->advice, sizeof(f->advice), "%s",
		 ns == unknown || ns == off ? "`sonde record -t +gpu,syscall,lock` records it." :
					      "Samples name it: `sonde record -F 999`.");
}

/* Sums kernels of one name on all devices. */
static u64 sum_kernel(const struct gpu_busy *b, const char *name, u64 *works)
{
	u64 ns = 0;

	*works = 0;
	for (u32 i = 0; i < b->kernels.n; i++) {
		const char *other = ((const struct gpu_kernel_key *)map__key(&b->kernels, i))->name;
		const struct gpu_sum *s = map__value(&b->kernels, i);

		if (other != name && (!other || !name || strcmp(other, name) != 0))
			continue;
		ns += s->ns;
		*works += s->works;
	}
	return ns;
}

static void add_kernel(const struct gpu_busy *b, struct findings *out)
{
	const struct gpu_kernel_key *key = NULL;
	const struct gpu_sum *best = NULL;
	struct finding *f;
	u64 all = 0;

	MAP_EACH_ENTRY(const struct gpu_sum *s, const struct gpu_kernel_key *k, &b->kernels) {
		all += s->ns;
		if (best && s->ns <= best->ns)
			continue;
		best = s;
		key = k;
	}
	f = all ? findings__add(out, FINDING_GPU_KERNEL) : NULL;
	if (!f)
		return;
	f->pid = key->device.pid;
	f->processes = processes_of(b);
	f->lost_ns = sum_kernel(b, key->name, &f->times);
	f->wall_ns = all;
	f->weight = KERNEL_WEIGHT * (double)f->lost_ns;
	snprintf(f->object, sizeof(f->object), "%s",
		 key->name ? gpu_model__short_name(b->model, key->name) : "kernels without a name");
	snprintf(f->report, sizeof(f->report), "cuda-kern");
}

/* Returns the device with the most time that is not done, n if all are. */
static u32 next_device(const struct gpu_busy *b, const bool *done)
{
	u32 best = b->devices.n;

	for (u32 i = 0; i < b->devices.n; i++)
		if (!done[i] && gpu_device__time(gpu_busy__sum(b, i)) &&
		    (best == b->devices.n ||
		     gpu_device__time(gpu_busy__sum(b, i)) > gpu_device__time(gpu_busy__sum(b, best))))
			best = i;
	return best;
}

int findings__find_gpu(const struct finding_input *in, struct findings *out)
{
	const struct gpu_gaps *g = in->gaps;
	bool *done;
	u32 device;

	if (!g || !g->busy->devices.n)
		return 0;
	done = calloc(g->busy->devices.n, sizeof(*done));
	if (!done)
		return -ENOMEM;
	for (u32 n = 0; n < DEVICES_MAX && (device = next_device(g->busy, done)) < g->busy->devices.n; n++) {
		add_device(in, out, device);
		add_tail(in->q, g, out, device);
		done[device] = true;
	}
	free(done);
	add_unrecorded(in, out);
	add_kernel(g->busy, out);
	return 0;
}

FINDINGS(gpu) = { .name = "gpu", .find = findings__find_gpu };
