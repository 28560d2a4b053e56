// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/gpu_gaps.h"

#include "util/array.h"
#include "util/compare.h"

#include <errno.h>
#include <stdlib.h>

/* Events in each window of the trace. A window's work is in memory, some 200 bytes each. */
u32 gpu_busy__window = 2u << 20;

/* ns without work before the trace's end that make a gap */
#define TAIL_MIN 1000000000ull

struct item {
	u64 start, end;
	u32 device; /* index */
	u32 context, stream, tid, stack;
	u64 launch_start, launch_end;
	const char *call, *name;
	bool is_kernel;
};

/* A kernel or copy begins (1) or ends (-1); cut to the window. */
struct edge {
	u64 time;
	u32 device;
	s8 kernel, copy;
};

/*
 * The whole trace is read: work outside of the selected time says since when a device was idle, and which launch ended
 * that.
 */
struct reading {
	struct gpu_busy *busy;
	u64 selected_from, selected_to;
	u64 from, to; /* of the window */
	bool first; /* the first window of the trace */
	struct item *items;
	struct edge *edges;
	u32 n, allocated;
	gpu_busy_fn fn;
	void *arg;
};

static int count_host_work(struct gpu_busy *b, const struct gpu_work *w)
{
	struct gpu_host_work *a = map__get(&b->host_work, &w->pid);

	if (!a)
		return -ENOMEM;
	a->kernels += w->kind == GPU_KERNEL;
	a->copies += w->kind == GPU_COPY;
	a->sets += w->kind == GPU_SET;
	a->graphs += w->kind == GPU_GRAPH;
	a->ns += query__inside(b->args, w->start, w->end);
	return 0;
}

/* Work without a duration counts if it lies in the selected time. */
static bool is_selected(const struct reading *r, u64 start, u64 end)
{
	return start < r->selected_to && (end > r->selected_from || (end == start && start >= r->selected_from));
}

static u64 clip(const struct reading *r, u64 time)
{
	return time < r->selected_from ? r->selected_from : time > r->selected_to ? r->selected_to : time;
}

/* Counts work in the window in which it begins. */
static int count(struct reading *r, const struct gpu_work *w, struct gpu_device_sum *d)
{
	struct gpu_kernel_key key = { *gpu_busy__key(r->busy, d->index), w->name };
	struct gpu_sum *sum;

	d->kernels += w->kind == GPU_KERNEL;
	d->copies += w->kind == GPU_COPY;
	d->sets += w->kind == GPU_SET;
	d->graphs += w->kind == GPU_GRAPH;
	d->bytes += w->kind == GPU_COPY ? w->bytes : 0;
	/* the duration of work that had not ended is not known */
	if (w->kind != GPU_KERNEL || w->open)
		return 0;
	sum = map__get(&r->busy->kernels, &key);
	if (!sum)
		return -ENOMEM;
	sum->works++;
	sum->ns += query__inside(r->busy->args, w->start, w->end);
	return 0;
}

static int make_room(struct reading *r)
{
	u32 want = r->allocated ? 2 * r->allocated : 1024;
	struct item *items;
	struct edge *edges;

	if (r->n < r->allocated)
		return 0;
	items = realloc(r->items, want * sizeof(*items));
	if (!items)
		return -ENOMEM;
	r->items = items;
	edges = realloc(r->edges, 2 * (size_t)want * sizeof(*edges));
	if (!edges)
		return -ENOMEM;
	r->edges = edges;
	r->allocated = want;
	return 0;
}

static int add(struct reading *r, const struct gpu_work *w, u32 device)
{
	const struct gpu_launch *l = w->launch;
	bool is_kernel = w->kind == GPU_KERNEL || w->kind == GPU_GRAPH;
	u64 from = clip(r, w->start > r->from ? w->start : r->from);
	u64 to = clip(r, w->end < r->to ? w->end : r->to);
	int err = make_room(r);

	if (err)
		return err;
	r->edges[2 * r->n] = (struct edge){ from, device, is_kernel, !is_kernel };
	r->edges[2 * r->n + 1] = (struct edge){ to > from ? to : from, device, (s8)-is_kernel, (s8) - !is_kernel };
	r->items[r->n++] = (struct item){
		.start = w->start,
		.end = w->end,
		.device = device,
		.context = w->context,
		.stream = w->stream,
		.tid = l ? l->tid : 0,
		.stack = l ? l->stack : 0,
		.launch_start = l ? l->start : 0,
		.launch_end = l ? l->end : 0,
		.call = l ? l->function : NULL,
		.name = w->kind == GPU_KERNEL ? w->name : gpu_work__operation(w),
		.is_kernel = w->kind == GPU_KERNEL,
	};
	return 0;
}

static int on_work(const struct gpu_work *w, void *arg)
{
	struct gpu_device_key key = { w->pid, w->device };
	struct reading *r = arg;
	struct gpu_busy *b = r->busy;
	bool begins = r->first || w->start >= r->from;
	u32 known = b->devices.n;
	struct gpu_device_sum *d;
	int err = 0;

	if (b->args->tids.n && (!w->launch || !trace_ids__have(&b->args->tids, w->launch->tid)))
		return 0;
	if (w->host_time)
		return begins && is_selected(r, w->start, w->end) ? count_host_work(b, w) : 0;
	if (w->end < w->start || w->end < r->from || w->start >= r->to)
		return 0;
	d = map__get(&b->devices, &key);
	if (!d)
		return -ENOMEM;
	if (b->devices.n > known)
		d->index = known;
	if (begins && is_selected(r, w->start, w->end))
		err = count(r, w, d);
	return err ? err : add(r, w, d->index);
}

COMPARE_BY(by_time, struct edge, ASCENDING(device), ASCENDING(time))

COMPARE_BY(by_start, struct item, ASCENDING(device), ASCENDING(start), ASCENDING(end))

/* error: of the clock, ns, by which successive kernels may seem to overlap */
static void add_interval_time(struct gpu_device_sum *d, u32 kernels, u32 copies, u64 ns, u64 error)
{
	d->busy_ns += kernels || copies ? ns : 0;
	d->kernel_ns += kernels ? ns : 0;
	d->copy_ns += copies ? ns : 0;
	d->both_ns += kernels && copies ? ns : 0;
	d->depth_ns += kernels * ns;
	if (ns > (kernels > 1 ? error : 0) && kernels > d->deepest)
		d->deepest = kernels;
}

/* Sums up what ran between successive edges. */
static int sum_edges(struct reading *r)
{
	u32 kernels = 0, copies = 0;
	u64 since = 0;
	int err = 0;

	for (u32 i = 0; !err && i < 2 * r->n; i++) {
		const struct edge *e = &r->edges[i];
		bool was = kernels || copies, is;

		if (was)
			add_interval_time(gpu_busy__sum(r->busy, e->device), kernels, copies,
					  e->time - r->edges[i - 1].time, r->busy->coverage.clock_error);
		kernels += (u32)e->kernel;
		copies += (u32)e->copy;
		is = kernels || copies;
		if (!was && is)
			since = e->time;
		if (was && !is && r->fn && e->time > since)
			err = r->fn(e->device, since, e->time, r->arg);
	}
	return err;
}

/* Makes room: gaps below a limit, which doubles each time, are only summed up. */
static void drop_short(struct gpu_busy *b)
{
	u32 n = 0;

	while (b->n_gaps > GPU_GAPS_MAX / 2) {
		b->shortest = b->shortest ? 2 * b->shortest : 1024;
		for (u32 i = n = 0; i < b->n_gaps; i++) {
			const struct gpu_gap *g = &b->gaps[i];
			struct gpu_device_sum *d = gpu_busy__sum(b, g->device);

			if (g->tail || g->to - g->from >= b->shortest) {
				b->gaps[n++] = *g;
				continue;
			}
			d->short_gaps++;
			d->short_ns += g->to - g->from;
		}
		b->n_gaps = n;
	}
}

static int store_gap(struct gpu_busy *b, const struct gpu_gap *g)
{
	if (b->n_gaps == GPU_GAPS_MAX)
		drop_short(b);
	if (!array__push(b->gaps, b->n_gaps, *g))
		return -ENOMEM;
	return 0;
}

static int add_gap(struct reading *r, const struct item *i, u64 launch_before)
{
	struct gpu_busy *b = r->busy;
	struct gpu_device_sum *d = gpu_busy__sum(b, i->device);
	u64 from = clip(r, d->until), to = clip(r, i->start);

	if (from == to)
		return 0;
	d->gaps++;
	d->longest = to - from > d->longest ? to - from : d->longest;
	if (to - from < b->shortest) {
		d->short_gaps++;
		d->short_ns += to - from;
		return 0;
	}
	return store_gap(b, &(struct gpu_gap){
				    .from = from,
				    .to = to,
				    .device = i->device,
				    .context = i->context,
				    .stream = i->stream,
				    .tid = i->tid,
				    .launch_start = i->launch_start,
				    .launch_end = i->launch_end,
				    .launch_before = launch_before,
				    .call = i->call,
				    .name = i->name,
				    .is_kernel = i->is_kernel,
				    .stack = i->stack,
			    });
}

/* Adds a gap for a device without work until the trace's end: it hangs, or the program no longer uses it. */
static int add_tail(struct reading *r, u32 device)
{
	struct gpu_busy *b = r->busy;
	const struct gpu_device_sum *d = gpu_busy__sum(b, device);
	const struct task *task = names__task(b->args->names, gpu_busy__key(b, device)->pid, 0);
	u64 from = clip(r, d->until), to = clip(r, trace__summary(b->args->trace)->last);

	if (task && task->end && task->end < to)
		to = task->end;
	if (to < from + TAIL_MIN || to - from < query__duration(b->args) / 10)
		return 0;
	return store_gap(b, &(struct gpu_gap){
				    .from = from,
				    .to = to,
				    .device = device,
				    .tid = d->last_tid,
				    .launch_start = ~0ull,
				    .launch_end = ~0ull,
				    .tail = true,
			    });
}

static void add_to_stream(const struct reading *r, struct gpu_stream_sum *s, const struct item *i)
{
	u64 from = clip(r, i->start > s->until ? i->start : s->until), to = clip(r, i->end);

	s->busy_ns += to > from ? to - from : 0;
	s->until = i->end > s->until ? i->end : s->until;
	s->launched = i->launch_start;
	s->works += is_selected(r, i->start, i->end);
}

/* Takes work in order of its start: a gap is between the latest end so far and the next start. */
static int find_gaps(struct reading *r)
{
	struct gpu_busy *b = r->busy;
	int err = 0;

	for (u32 n = 0; !err && n < r->n; n++) {
		const struct item *i = &r->items[n];
		struct gpu_device_sum *d = gpu_busy__sum(b, i->device);
		struct gpu_stream_key key = { *gpu_busy__key(b, i->device), i->context, i->stream };
		struct gpu_stream_sum *s = map__get(&b->streams, &key);
		if (!s)
			return -ENOMEM;
		if (!r->first && i->start < r->from)
			continue; /* counted in the previous window */
		if (!d->until)
			d->first = clip(r, i->start);
		else if (i->start > d->until)
			err = add_gap(r, i, s->launched);
		d->until = i->end > d->until ? i->end : d->until;
		d->last = clip(r, d->until);
		d->last_tid = i->tid ? i->tid : d->last_tid;
		add_to_stream(r, s, i);
	}
	return err;
}

static void add_coverage(struct gpu_coverage *to, const struct gpu_coverage *t)
{
	to->joined += t->joined;
	to->unjoined += t->unjoined;
	to->unprobed += t->unprobed;
	to->host_time += t->host_time;
	to->unwatched += t->unwatched;
	to->dropped += t->dropped;
	to->dropped_bytes += t->dropped_bytes;
	to->clock_error = t->clock_error > to->clock_error ? t->clock_error : to->clock_error;
}

static int read_window(struct reading *r)
{
	struct gpu_busy *b = r->busy;
	const struct gpu_listener listener = { .work = on_work };
	struct gpu_coverage coverage = { 0 };
	int err;

	r->n = 0;
	err = gpu_model__read(b->model, r->from, r->to, &b->args->pids, &listener, r, &coverage);
	add_coverage(&b->coverage, &coverage);
	if (err || !r->n)
		return err;
	qsort(r->edges, 2 * (size_t)r->n, sizeof(*r->edges), by_time);
	err = sum_edges(r);
	if (err)
		return err;
	qsort(r->items, r->n, sizeof(*r->items), by_start);
	return find_gaps(r);
}

COMPARE_BY(gaps_by_start, struct gpu_gap, ASCENDING(from))

static int read_windows(struct reading *r)
{
	const struct query *args = r->busy->args;
	const struct trace_summary *t = trace__summary(args->trace);
	u64 first = t->first, last = t->last + (t->last < ~0ull);
	u64 step = last > first ? (last - first) / (t->events / gpu_busy__window + 1) + 1 : 0;
	int err = 0;

	r->selected_from = args->from;
	r->selected_to = args->to ? args->to : ~0ull;
	for (u64 at = first; !err && at < last; at = r->to) {
		r->from = at;
		r->to = trace_window__step_end(at, step, last);
		r->first = at == first;
		err = read_window(r);
	}
	return err;
}

int gpu_busy__read(struct gpu_busy *b, const struct query *args, gpu_busy_fn fn, void *arg)
{
	struct reading r = { .busy = b, .fn = fn, .arg = arg };
	int err;

	*b = (struct gpu_busy){ .args = args };
	map__init(&b->devices, sizeof(struct gpu_device_key), sizeof(struct gpu_device_sum));
	map__init(&b->streams, sizeof(struct gpu_stream_key), sizeof(struct gpu_stream_sum));
	map__init(&b->kernels, sizeof(struct gpu_kernel_key), sizeof(struct gpu_sum));
	map__init(&b->host_work, sizeof(u32), sizeof(struct gpu_host_work));
	err = gpu_model__new(&b->model, args->trace, args->names);
	if (!err)
		err = read_windows(&r);
	for (u32 i = 0; !err && i < b->devices.n; i++)
		err = add_tail(&r, i);
	free(r.items);
	free(r.edges);
	if (b->n_gaps)
		qsort(b->gaps, b->n_gaps, sizeof(*b->gaps), gaps_by_start);
	return err;
}

void gpu_busy__free(struct gpu_busy *b)
{
	MAPS_FREE(&b->devices, &b->streams, &b->kernels, &b->host_work);
	free(b->gaps);
	gpu_model__free(b->model);
	b->gaps = NULL;
	b->model = NULL;
}
