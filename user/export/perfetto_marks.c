// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Draws what is missing as slices on one track, and counters: lost records, tracing's cost, waiters for a GIL. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/meta.h"
#include "export/perfetto.h"
#include "util/array.h"
#include "util/compare.h"

#define WINDOW	   10000000000ull /* ns: no wait for a GIL is longer, unless the switch interval is */
#define MAX_POINTS (1u << 20)

/* TrackEvent */
enum { TRACK_EVENT_COUNTER_VALUE = 30 };

struct gil_key {
	u64 gil;
	u64 pid;
};

struct gil_waiters {
	s64 waiters;
	u64 last; /* the time of the last emitted point */
};

struct gil_point {
	u64 time;
	s32 change;
	u32 gil; /* index in the map */
};

struct gil_counts {
	struct map gils; /* struct gil_key -> struct gil_waiters */
	struct gil_point *points; /* not emitted yet */
	u32 n;
	u64 newest, emitted;
};

void perfetto__counter(struct perfetto *p, u64 time, const struct track *t, u64 value)
{
	size_t at;

	if (!t)
		return;
	at = track_event__begin(p, time, t, TRACK_EVENT_COUNTER);
	pb__int(&p->packet, TRACK_EVENT_COUNTER_VALUE, value);
	track_event__end(p, at);
}

void perfetto__mark(struct perfetto *p, const struct interval *span, const char *text)
{
	const struct track *t = perfetto__reserve_global(p, TRACK_LOSSES, "losses", span);
	size_t at;

	if (!t)
		return;
	at = track_event__begin(p, span->start, t, span->start == span->end ? TRACK_EVENT_INSTANT : TRACK_EVENT_BEGIN);
	track_event__name(p, text);
	track_event__end(p, at);
	if (span->start == span->end)
		return;
	at = track_event__begin(p, span->end, t, TRACK_EVENT_END);
	track_event__end(p, at);
}

static const char *path_of(const struct perfetto *p, u32 family, u32 object)
{
	u32 i;

	for (i = 0; i < p->e->facts->n_losses; i++) {
		const struct loss *l = &p->e->facts->losses[i];

		if (l->object == object && l->family == family && l->path)
			return l->path;
	}
	return "an object";
}

void perfetto__loss(struct perfetto *p, const struct view *v)
{
	struct interval span = { (u64)view__get(v, "first"), (u64)view__get(v, "last") };
	u32 family_id = (u32)view__get(v, "family"), object = (u32)view__get(v, "object");
	const struct schema_family *family = schema__family_by_id(p->schema, (u8)family_id);
	u64 count = (u64)view__get(v, "count");
	s64 reason = view__get(v, "reason");
	const char *name = family ? family->name : "?";
	char text[512];

	if (span.start > span.end)
		span.start = span.end;
	if (reason == LOSS_ATTACH_GAP) {
		snprintf(text, sizeof(text), "%s: %s not probed yet", name, path_of(p, family_id, object));
	} else if (reason == LOSS_UNPROBED) {
		snprintf(text, sizeof(text), "%s: functions of %s have no probes", name, path_of(p, family_id, object));
	} else {
		snprintf(text, sizeof(text), "%s: %llu lost, %s", name, count, loss__reason(reason));
		p->lost += count;
		p->lost_time = span.end > p->lost_time ? span.end : p->lost_time;
		perfetto__counter(p, p->lost_time,
				  perfetto__track(p, 0, TRACK_LOST_RECORDS, 0, "lost records", "count"), p->lost);
	}
	perfetto__mark(p, &span, text);
}

void perfetto__cost(struct perfetto *p, const struct view *v)
{
	u64 time = (u64)view__get(v, "time");

	perfetto__counter(p, time, perfetto__track(p, 0, TRACK_CPU_TIME, 0, "sonde: CPU time", "ns"),
			  (u64)view__get(v, "user") + (u64)view__get(v, "system") + (u64)view__get(v, "children"));
	perfetto__counter(p, time, perfetto__track(p, 0, TRACK_PROBES_TIME, 0, "sonde: probes, estimated", "ns"),
			  (u64)view__get(v, "probes"));
	perfetto__counter(p, time, perfetto__track(p, 0, TRACK_MEMORY, 0, "sonde: peak memory", "bytes"),
			  (u64)view__get(v, "memory"));
	perfetto__counter(p, time, perfetto__track(p, 0, TRACK_WRITTEN, 0, "sonde: trace file", "bytes"),
			  (u64)view__get(v, "written"));
}

COMPARE_BY(compare, struct gil_point, ASCENDING(time), ASCENDING(gil))

/* Emits the counts before a time; changes at one time are summed. */
static void emit_gils(struct perfetto *p, u64 before)
{
	struct gil_counts *g = p->gils;
	const struct gil_key *key;
	struct gil_waiters *w;
	u32 i;

	qsort(g->points, g->n, sizeof(*g->points), compare);
	for (i = 0; i < g->n && g->points[i].time < before; i++) {
		const struct gil_point *point = &g->points[i];

		key = map__key(&g->gils, point->gil);
		w = map__value(&g->gils, point->gil);
		w->waiters += point->change;
		if (i + 1 < g->n && point[1].time == point->time && point[1].gil == point->gil)
			continue;
		/* A wait longer than the window may begin before the last emitted point. */
		w->last = point->time > w->last ? point->time : w->last;
		perfetto__counter(p, w->last,
				  perfetto__track(p, (u32)key->pid, TRACK_GIL_WAITERS, point->gil, "GIL waiters",
						  "count"),
				  (u64)w->waiters);
	}
	memmove(g->points, g->points + i, (g->n - i) * sizeof(*g->points));
	g->n -= i;
	g->emitted = before;
}

static int add_point(struct gil_counts *g, u64 time, s32 change, u32 gil)
{
	if (!array__push(g->points, g->n, (struct gil_point){ time, change, gil }))
		return -ENOMEM;
	return 0;
}

static struct gil_counts *counts_of(struct perfetto *p)
{
	if (!p->gils) {
		p->gils = calloc(1, sizeof(*p->gils));
		if (p->gils)
			map__init(&p->gils->gils, sizeof(struct gil_key), sizeof(struct gil_waiters));
	}
	return p->gils;
}

int perfetto__count_gil(struct perfetto *p, const struct view *v)
{
	struct gil_key key = { (u64)view__get(v, "gil"), (u64)(u32)view__get(v, "pid") };
	u64 start = (u64)view__get(v, "start"), end = (u64)view__get(v, "time");
	struct gil_counts *g = counts_of(p);
	u32 i;

	if (!g || !map__get(&g->gils, &key))
		return -ENOMEM;
	for (i = 0; memcmp(map__key(&g->gils, i), &key, sizeof(key)) != 0; i++)
		;
	if (add_point(g, start, 1, i) || add_point(g, end, -1, i))
		return -ENOMEM;
	g->newest = end > g->newest ? end : g->newest;
	if (g->n > MAX_POINTS)
		emit_gils(p, g->points[g->n / 2].time);
	else if (g->newest > g->emitted + 3 * WINDOW)
		emit_gils(p, g->newest - WINDOW);
	return 0;
}

static void put_last_mark(struct perfetto *p, const char *format, u64 count)
{
	u64 last = p->e->facts->summary->last;
	char text[128];

	snprintf(text, sizeof(text), format, count);
	perfetto__mark(p, &(struct interval){ last, last }, text);
}

/*
 * Marks the borders of the traced time, outside which not all probes recorded; merged traces and pauses make several.
 */
static void put_windows(struct perfetto *p, const struct trace_facts *facts)
{
	for (u32 i = 0; i < facts->n_windows; i++) {
		u64 from = facts->windows[i].from, to = facts->windows[i].to;

		if (from > facts->start)
			perfetto__mark(p, &(struct interval){ from, from },
				       i && facts->paused_ns ? "sonde: the recording resumes" :
							       "sonde: all is attached, tracing is live");
		if (to < facts->summary->last)
			perfetto__mark(p, &(struct interval){ to, to },
				       i + 1 < facts->n_windows && facts->paused_ns ?
					       "sonde: the recording is paused" :
					       "sonde: tracing stops, probes are detached");
	}
}

void perfetto__finish_marks(struct perfetto *p)
{
	const struct trace_facts *facts = p->e->facts;
	u64 damaged = trace__damaged(p->e->trace);

	if (p->gils)
		emit_gils(p, ~0ull);
	put_windows(p, facts);
	if (damaged > facts->damaged)
		damaged = facts->damaged ? facts->damaged : damaged;
	if (damaged)
		put_last_mark(p, "%llu chunks of the trace are damaged and left out", damaged);
	if (facts->summary->being_recorded)
		put_last_mark(p, "the recording went on when this was made, %llu bytes of it were not whole",
			      facts->summary->torn_bytes);
	else if (!facts->end_reason)
		put_last_mark(p, "the recording was cut off here, %llu bytes of it torn", facts->summary->torn_bytes);
	if (p->unordered)
		put_last_mark(p, "%llu runs of threads left out: they overlap others on their CPU", p->unordered);
}

void perfetto__free_marks(struct perfetto *p)
{
	if (!p->gils)
		return;
	map__free(&p->gils->gils);
	free(p->gils->points);
	free(p->gils);
}
