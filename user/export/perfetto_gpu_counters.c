// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes GPU counters (busy share, allocated memory), and marks for what is not known.
 *
 * A GPU is busy while any work runs on it; overlapping work of several streams or processes counts once. Work arrives
 * nearly in the order of its ends: the last seconds are stored as intervals, earlier time as busy ns in slots of equal
 * length. Work that began before the stored intervals is added to the slots that it covers; in its first and last slot,
 * time may be counted twice.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/shim.h"
#include "export/perfetto.h"
#include "model/gpu_metrics.h"
#include "util/array.h"

#define WINDOW	 2000000000ull /* ns */
#define SLOTS	 2000 /* for the whole trace, about */
#define MIN_SLOT 1000000ull /* ns */
#define KEPT	 (1u << 16) /* intervals */

/* InternedData, InternedGpuCounterDescriptor, GpuCounterDescriptor, GpuCounterSpec */
enum { INTERNED_GPU_COUNTERS = 47 };
enum { COUNTERS_IID = 1, COUNTERS_DESCRIPTOR = 2, COUNTERS_GPU = 3 };
enum { DESCRIPTOR_SPEC = 1 };
enum { SPEC_ID = 1, SPEC_NAME = 2, SPEC_DESCRIPTION = 3, SPEC_UNIT = 7, UNIT_BYTE = 7, UNIT_PERCENT = 37 };
/* GpuCounterEvent, GpuCounter */
enum { COUNTER_EVENT_VALUE = 2, COUNTER_EVENT_GPU = 3, COUNTER_EVENT_IID = 4 };
enum { VALUE_ID = 1, VALUE_INT = 2, VALUE_DOUBLE = 3 };

/* The metrics of NVML follow, by enum nvml_metric. */
enum gpu_counter { GPU_COUNTER_BUSY = 1, GPU_COUNTER_MEMORY, GPU_COUNTER_METRICS };

struct busy {
	struct interval *recent; /* by time, disjoint */
	u32 n;
	u64 settled; /* all earlier time is in the slots */
	u64 *slots;
};

struct memory {
	u64 live;
	u64 last;
};

struct memory_key {
	u32 pid; /* for memory on an unknown device, else 0 */
	u32 gpu;
};

struct host_time {
	struct interval span;
	u64 works;
};

struct gpu_counters {
	u64 first, slot; /* ns */
	u32 n_slots;
	struct map busy; /* u32 gpu -> struct busy */
	struct map memory; /* struct memory_key -> struct memory */
	struct map host_time; /* u32 pid -> struct host_time */
	struct map lost; /* u32 pid -> u64 records */
	struct map descriptors; /* u32 gpu -> struct interned */
};

static struct gpu_counters *counters_of(struct perfetto *p)
{
	const struct trace_summary *summary = p->e->facts->summary;
	u64 length = summary->last > summary->first ? summary->last - summary->first : 0;
	struct gpu_counters *c = p->gpu_counters;

	if (c)
		return c;
	c = calloc(1, sizeof(*c));
	if (!c) {
		p->packet.failed = true;
		return NULL;
	}
	c->first = summary->first;
	c->slot = length / SLOTS > MIN_SLOT ? length / SLOTS : MIN_SLOT;
	c->n_slots = (u32)(length / c->slot) + 1;
	map__init(&c->busy, sizeof(u32), sizeof(struct busy));
	map__init(&c->memory, sizeof(struct memory_key), sizeof(struct memory));
	map__init(&c->host_time, sizeof(u32), sizeof(struct host_time));
	map__init(&c->lost, sizeof(u32), sizeof(u64));
	map__init(&c->descriptors, sizeof(u32), sizeof(struct interned));
	p->gpu_counters = c;
	return c;
}

/* Adds [start, end) to the slots, each of which is full at its length. */
static void fill(const struct gpu_counters *c, u64 *slots, u64 start, u64 end)
{
	u64 last = c->first + c->n_slots * c->slot, from, to;

	start = start < c->first ? c->first : start;
	end = end > last ? last : end;
	for (; start < end; start = to) {
		u64 i = (start - c->first) / c->slot;

		from = c->first + i * c->slot;
		to = from + c->slot < end ? from + c->slot : end;
		slots[i] += to - start;
		if (slots[i] > c->slot)
			slots[i] = c->slot;
	}
}

/* Moves intervals that ended before this time into the slots. */
static void settle(const struct gpu_counters *c, struct busy *b, u64 before)
{
	u32 i;

	for (i = 0; i < b->n && b->recent[i].end <= before; i++) {
		fill(c, b->slots, b->recent[i].start, b->recent[i].end);
		b->settled = b->recent[i].end;
	}
	memmove(b->recent, b->recent + i, (b->n - i) * sizeof(*b->recent));
	b->n -= i;
}

/* Inserts the span into the recent intervals, merged with those that it touches. */
static void merge(struct busy *b, struct interval span)
{
	u32 after = b->n, first;

	while (after && b->recent[after - 1].start > span.end)
		after--;
	for (first = after; first && b->recent[first - 1].end >= span.start; first--) {
		struct interval *other = &b->recent[first - 1];

		span.start = other->start < span.start ? other->start : span.start;
		span.end = other->end > span.end ? other->end : span.end;
	}
	memmove(b->recent + first + 1, b->recent + after, (b->n - after) * sizeof(*b->recent));
	b->recent[first] = span;
	b->n = b->n - (after - first) + 1;
}

static bool prepare(const struct gpu_counters *c, struct busy *b)
{
	if (!b->slots)
		b->slots = calloc(c->n_slots, sizeof(*b->slots));
	if (!b->recent)
		b->recent = calloc(KEPT + 1, sizeof(*b->recent));
	return b->slots && b->recent;
}

void perfetto__gpu_busy(struct perfetto *p, u32 gpu, const struct interval *span)
{
	const struct gpu_counters *c = counters_of(p);
	struct busy *b = c ? map__get(&p->gpu_counters->busy, &gpu) : NULL;
	struct interval rest = *span;

	if (!b || !prepare(c, b)) {
		p->packet.failed = true;
		return;
	}
	if (b->n && span->end > b->recent[0].end + 2 * WINDOW)
		settle(c, b, span->end - WINDOW);
	if (b->n == KEPT)
		settle(c, b, b->recent[KEPT / 2].end);
	if (rest.start < b->settled) {
		fill(c, b->slots, rest.start, rest.end < b->settled ? rest.end : b->settled);
		rest.start = b->settled;
	}
	if (rest.start < rest.end)
		merge(b, rest);
}

static void put_spec(struct perfetto *p, u64 counter, const char *name, const char *doc, u64 unit)
{
	size_t at = pb__begin(&p->interned, DESCRIPTOR_SPEC);

	pb__int(&p->interned, SPEC_ID, counter);
	pb__text(&p->interned, SPEC_NAME, name, strlen(name));
	pb__text(&p->interned, SPEC_DESCRIPTION, doc, strlen(doc));
	pb__int(&p->interned, SPEC_UNIT, unit);
	pb__end(&p->interned, at);
}

/* Perfetto's MeasureUnit */
static u64 unit_of(const char *unit)
{
	static const struct {
		const char *unit;
		u64 number;
	} units[] = { { "%", UNIT_PERCENT }, { "MiB", 9 }, { "MHz", 15 }, { "W", 29 }, { "C", 34 } };

	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (!strcmp(unit, units[i].unit))
			return units[i].number;
	return 0;
}

static const struct gpu_metric *drawn_metric(u64 number)
{
	const struct gpu_metric *m = gpu_metric__of(number);

	return m && !m->is_of_process && !m->is_constant ? m : NULL;
}

static void put_metric_specs(struct perfetto *p)
{
	for (u64 i = 0; i < GPU_METRICS_MAX; i++) {
		const struct gpu_metric *m = drawn_metric(i);

		if (m)
			put_spec(p, GPU_COUNTER_METRICS + i, m->title, *m->unit ? m->unit : "count", unit_of(m->unit));
	}
}

/* Returns the number of a GPU's counters; valid in this packet. */
static u64 put_descriptor(struct perfetto *p, u32 gpu)
{
	bool must_emit;
	u64 number = perfetto__number(p, &p->gpu_counters->descriptors, &gpu, &must_emit);
	size_t interned, at;

	if (!must_emit)
		return number;
	interned = pb__begin(&p->interned, INTERNED_GPU_COUNTERS);
	pb__int(&p->interned, COUNTERS_IID, number);
	at = pb__begin(&p->interned, COUNTERS_DESCRIPTOR);
	put_spec(p, GPU_COUNTER_BUSY, "busy", "share of the time in which anything ran on it", UNIT_PERCENT);
	put_spec(p, GPU_COUNTER_MEMORY, "memory", "allocated while traced", UNIT_BYTE);
	if (trace__has(p->e->trace, "nvml_value"))
		put_metric_specs(p);
	pb__end(&p->interned, at);
	pb__int(&p->interned, COUNTERS_GPU, gpu);
	pb__end(&p->interned, interned);
	return number;
}

/* Writes the counter's value from its last event until time, as the format requires; the first value is ignored. */
static void put_value_until(struct perfetto *p, u64 time, u32 gpu, u64 counter, double value)
{
	size_t event, at;

	packet__begin(p, time);
	event = pb__begin(&p->packet, PACKET_GPU_COUNTER);
	at = pb__begin(&p->packet, COUNTER_EVENT_VALUE);
	pb__int(&p->packet, VALUE_ID, counter);
	pb__double(&p->packet, VALUE_DOUBLE, value);
	pb__end(&p->packet, at);
	pb__int(&p->packet, COUNTER_EVENT_GPU, gpu);
	pb__int(&p->packet, COUNTER_EVENT_IID, put_descriptor(p, gpu));
	pb__end(&p->packet, event);
	packet__end(p, true);
}

int perfetto__gpu_metric(struct perfetto *p, const struct view *v)
{
	u64 metric = (u64)view__get(v, "metric");
	const struct gpu_metric *m = drawn_metric(metric);
	u32 gpu;

	if (!m)
		return 0;
	gpu = counters_of(p) ? gpus__number(&p->gpus, 0, (u32)view__get(v, "device")) : GPUS_MAX;
	if (gpu == GPUS_MAX)
		return -ENOMEM;
	put_value_until(p, (u64)view__get(v, "time"), gpu, GPU_COUNTER_METRICS + metric,
			gpu_metric__value(m, (u64)view__get(v, "value")));
	return 0;
}

static void put_busy(struct perfetto *p, u32 gpu, const struct busy *b)
{
	const struct gpu_counters *c = p->gpu_counters;
	u64 before = 0;

	for (u32 i = 0; i <= c->n_slots; i++) {
		u64 value = i < c->n_slots ? b->slots[i] : 0;

		if (i && value == before && i < c->n_slots)
			continue;
		perfetto__maybe_next_frame(p);
		put_value_until(p, c->first + i * c->slot, gpu, GPU_COUNTER_BUSY,
				100.0 * (double)before / (double)c->slot);
		before = value;
	}
}

/* Pinned memory of the host is not a device's. */
static bool is_of_device(const struct gpu_allocation *a)
{
	return a->memory != GPU_MEMORY_PAGEABLE && a->memory != GPU_MEMORY_PINNED;
}

int perfetto__gpu_memory(struct perfetto *p, const struct gpu_allocation *a)
{
	struct gpu_counters *c = counters_of(p);
	struct memory_key key = { 0 };
	struct memory *m;
	u64 before;

	if (!is_of_device(a) || !a->bytes)
		return c ? 0 : -ENOMEM;
	key.pid = a->device == GPU_NO_DEVICE ? a->pid : 0;
	key.gpu = key.pid ? 0 : gpus__number(&p->gpus, a->pid, a->device);
	m = c && key.gpu != GPUS_MAX ? map__get(&c->memory, &key) : NULL;
	if (!m)
		return -ENOMEM;
	before = m->live;
	/* Allocations from before tracing are not known, so releases may exceed what is counted. */
	if (a->release)
		m->live -= a->bytes < m->live ? a->bytes : m->live;
	else
		m->live += a->bytes < ~0ull - m->live ? a->bytes : ~0ull - m->live;
	m->last = a->time > m->last ? a->time : m->last;
	if (key.pid)
		perfetto__counter(p, m->last,
				  perfetto__track(p, key.pid, TRACK_GPU_MEMORY, key.gpu, "GPU memory, device not known",
						  "bytes"),
				  m->live);
	else
		put_value_until(p, m->last, key.gpu, GPU_COUNTER_MEMORY, (double)before);
	return 0;
}

static void finish_memory(struct perfetto *p, const struct memory_key *key, const struct memory *m, u64 last)
{
	perfetto__maybe_next_frame(p);
	if (!key->pid && m->last)
		put_value_until(p, last > m->last ? last : m->last, key->gpu, GPU_COUNTER_MEMORY, (double)m->live);
}

int perfetto__gpu_host_time(struct perfetto *p, const struct gpu_work *w)
{
	struct gpu_counters *c = counters_of(p);
	struct host_time *h = c ? map__get(&c->host_time, &w->pid) : NULL;

	if (!h)
		return -ENOMEM;
	if (!h->works++)
		h->span = (struct interval){ w->start, w->end };
	h->span.start = w->start < h->span.start ? w->start : h->span.start;
	h->span.end = w->end > h->span.end ? w->end : h->span.end;
	return 0;
}

void perfetto__gpu_clock(struct perfetto *p, const struct view *v)
{
	perfetto__counter(p, (u64)view__get(v, "time"),
			  perfetto__track(p, (u32)view__get(v, "pid"), TRACK_GPU_CLOCK, 0, "GPU clock error", "ns"),
			  (u64)view__get(v, "error"));
}

static const char *reason_of(u32 reason)
{
	static const char *const names[] = { "", "no buffer was free", "by CUPTI itself", "they made no sense",
					     "the process ended first" };

	return reason && reason < ARRAY_LEN(names) ? names[reason] : "for a reason not known here";
}

void perfetto__gpu_dropped(struct perfetto *p, const struct view *v)
{
	u32 pid = (u32)view__get(v, "pid"), reason = (u32)view__get(v, "reason");
	u64 time = (u64)view__get(v, "time"), records = (u64)view__get(v, "records"),
	    bytes = (u64)view__get(v, "bytes");
	struct gpu_counters *c = counters_of(p);
	u64 *lost = c ? map__get(&c->lost, &pid) : NULL;
	char label[64], text[256];
	int len;

	if (!lost) {
		p->packet.failed = true;
		return;
	}
	names__label(p->e->names, label, sizeof(label), pid, 0);
	if (records)
		len = snprintf(text, sizeof(text), "gpu: %llu records of %s lost: %s", records, label,
			       reason_of(reason));
	else
		len = snprintf(text, sizeof(text), "gpu: records of %s lost, not counted: %s", label,
			       reason_of(reason));
	if (bytes && len < (int)sizeof(text))
		snprintf(text + len, sizeof(text) - len, "; buffers of %llu bytes were discarded", bytes);
	perfetto__mark(p, &(struct interval){ time, time }, text);
	*lost += records;
	perfetto__counter(p, time, perfetto__track(p, pid, TRACK_GPU_LOST, 0, "GPU records lost", "count"), *lost);
}

void perfetto__gpu_shim(struct perfetto *p, const struct view *v)
{
	u64 time = (u64)view__get(v, "time");
	char label[64], text[512];
	const char *why;
	u32 len;

	if (view__get(v, "state") != GPU_SHIM_REFUSED)
		return;
	why = view__text(v, schema_event__field(v->event, "text"), &len);
	names__label(p->e->names, label, sizeof(label), (u32)view__get(v, "pid"), 0);
	snprintf(text, sizeof(text), "gpu: no device times of %s: %.*s", label, (int)(len < 400 ? len : 400), why);
	perfetto__mark(p, &(struct interval){ time, time }, text);
}

/* Where device times were not requested, calls without them are no loss: a slice beneath the process. */
static void put_host_time(struct perfetto *p, u32 pid, const struct host_time *h)
{
	const struct track *t;
	char text[160];
	size_t at;

	perfetto__maybe_next_frame(p);
	t = perfetto__reserve_process(p, pid, TRACK_GPU_HOST_TIME, "GPU work without device times", &h->span);
	if (!t)
		return;
	snprintf(text, sizeof(text),
		 "%llu kernels, copies and sets, known only by their calls: the process had no shim", h->works);
	at = track_event__begin(p, h->span.start, t, TRACK_EVENT_BEGIN);
	track_event__name(p, text);
	track_event__end(p, at);
	at = track_event__begin(p, h->span.end, t, TRACK_EVENT_END);
	track_event__end(p, at);
}

void perfetto__finish_gpu_counters(struct perfetto *p, const struct gpu_coverage *coverage)
{
	u64 last = p->e->facts->summary->last;
	struct gpu_counters *c = p->gpu_counters;
	char text[160];

	for (u32 i = 0; c && i < c->busy.n; i++) {
		struct busy *b = map__value(&c->busy, i);

		if (!b->slots)
			continue;
		settle(c, b, ~0ull);
		put_busy(p, *(const u32 *)map__key(&c->busy, i), b);
	}
	for (u32 i = 0; c && i < c->memory.n; i++)
		finish_memory(p, map__key(&c->memory, i), map__value(&c->memory, i), last);
	for (u32 i = 0; c && i < c->host_time.n; i++)
		put_host_time(p, *(const u32 *)map__key(&c->host_time, i), map__value(&c->host_time, i));
	if (!coverage->unjoined)
		return;
	snprintf(text, sizeof(text), "gpu: the calls that launched %llu kernels, copies and sets are not known",
		 coverage->unjoined);
	perfetto__mark(p, &(struct interval){ last, last }, text);
}

void perfetto__free_gpu_counters(struct perfetto *p)
{
	struct gpu_counters *c = p->gpu_counters;

	if (!c)
		return;
	MAP_EACH(const struct busy *b, &c->busy) {
		free(b->recent);
		free(b->slots);
	}
	MAPS_FREE(&c->busy, &c->memory, &c->host_time, &c->lost, &c->descriptors);
	free(c);
}
