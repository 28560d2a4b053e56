// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/gil.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/event.h"
#include "model/gil_line.h"
#include "model/order.h"
#include "util/array.h"
#include "util/search.h"
#include "probes/gil/gil.h"

/* ns that are read on both sides of the selected time, so that its first and last waits have their holders. */
#define MARGIN 1000000000ull
/*
 * gil_model__advance reads so many ns beyond its part. A GIL without an event in the last SILENCE ns of them has no
 * waiter any more; of another one, an event follows each wait of the part by GIL_DELAY at least, so that the wait has
 * been cut.
 */
#define AHEAD	300000000ull
#define SILENCE 200000000ull

/*
 * Overlapping waits become one interval in which at least one thread waited. At most OVERLAPS intervals that may still
 * grow are stored.
 */
#define OVERLAPS 64u

struct overlap {
	u64 from, to;
};

struct gil_state {
	struct gil_line *line;
	u64 last; /* time of its last event */
	struct overlap busy[OVERLAPS]; /* disjoint, by time */
	u32 n_busy;
	double busy_ns; /* of intervals that are no longer stored */
};

struct waiter_key {
	struct gil_key gil;
	u32 tid;
	u32 unused;
};

struct waiter {
	u64 attempt, attempt_start;
	u64 number; /* of its last wait */
	u32 stack;
	u32 usual; /* stack of its last short wait that has one: it represents those without (GIL_STACK_NS) */
	bool estimated; /* `stack` is the usual one */
	bool again; /* the last wait timed out: the next one belongs to the same attempt */
};

struct slice {
	u64 from, to;
	u64 pause; /* ns before the slice that were not measured */
};

struct fields {
	const struct schema_event *event;
	struct common_fields common;
	const struct schema_field *gil, *result, *dropper, *holder, *locked, *number, *stack, *holder_stack, *waiters,
		*is_short;
};

enum kind { KIND_WAIT, KIND_DROP, KIND_HOLD, KIND_SWITCH, KINDS };

static const char *const kind_names[KINDS] = { "gil_wait", "gil_drop", "gil_hold", "gil_switch" };

struct gil_model {
	struct trace *trace;
	struct trace_ids pids;
	const struct schema_event *kinds[KINDS + 1]; /* that the trace has */
	struct fields fields[KINDS];
	struct map gils; /* struct gil_key -> struct gil_state */
	struct map waiters; /* struct waiter_key -> struct waiter */
	struct slice *slices;
	u32 n_slices, slice; /* index of the slice of the last event plus 1; 0: none */
	struct order *order;
	u64 from, to; /* the selected time */
	u64 read_from, read_to; /* of the current reading; rows that began earlier have been read */
	bool started;
	struct gil_listener listener;
	void *arg;
};

static int segment(const struct gil_segment *p, void *arg)
{
	struct gil_model *m = arg;

	return m->listener.segment ? m->listener.segment(p, m->arg) : 0;
}

static double weight(const struct gil_model *m)
{
	const struct slice *s = m->slice ? &m->slices[m->slice - 1] : NULL;

	return s && s->to > s->from ? 1 + (double)s->pause / (double)(s->to - s->from) : 1;
}

static double ns_of(const struct gil_model *m, const struct overlap *o)
{
	u64 from = o->from > m->from ? o->from : m->from, to = m->to && o->to > m->to ? m->to : o->to;

	return to > from ? (double)(to - from) * weight(m) : 0;
}

static void retire_busy(struct gil_model *m, struct gil_state *g)
{
	u32 i;

	for (i = 0; i < g->n_busy; i++)
		g->busy_ns += ns_of(m, &g->busy[i]);
	g->n_busy = 0;
}

/* Waits arrive in order of their ends: a new one can only overlap the last intervals. */
static void add_busy(struct gil_model *m, struct gil_state *g, u64 from, u64 to)
{
	while (g->n_busy && g->busy[g->n_busy - 1].to >= from) {
		struct overlap *o = &g->busy[--g->n_busy];

		from = o->from < from ? o->from : from;
		to = o->to > to ? o->to : to;
	}
	if (g->n_busy == OVERLAPS) {
		g->busy_ns += ns_of(m, &g->busy[0]);
		memmove(g->busy, g->busy + 1, sizeof(g->busy) - sizeof(g->busy[0]));
		g->n_busy--;
	}
	g->busy[g->n_busy++] = (struct overlap){ from, to };
}

static struct gil_state *state_of(struct gil_model *m, const struct gil_key *key)
{
	struct gil_state *g = map__get(&m->gils, key);
	u32 i = m->gils.n - 1;

	if (g && !g->line)
		g->line = gil_line__new(map__key(&m->gils, i));
	return g && g->line ? g : NULL;
}

/* Called when the slice changes: later events have no relation to earlier ones. */
static int end_lines(struct gil_model *m)
{
	struct gil_state *g;
	int err = 0;
	u32 i;

	for (i = 0; !err && i < m->gils.n; i++) {
		g = map__value(&m->gils, i);
		if (g->line)
			err = gil_line__cut(g->line, 0, true, segment, m);
		retire_busy(m, g);
	}
	return err;
}

static u32 slice_at(const struct gil_model *m, u64 time)
{
	u32 at = SEARCH(m->n_slices, i, m->slices[i].to < time);

	return at < m->n_slices && m->slices[at].from <= time ? at + 1 : 0;
}

static u64 get(const struct view *v, const struct schema_field *f)
{
	return (u64)view__s64(v, f);
}

static struct waiter *waiter_of(struct gil_model *m, const struct gil_timed_wait *w, u64 number)
{
	struct waiter_key key = { w->gil, w->tid, 0 };
	struct waiter *t = map__get(&m->waiters, &key);
	bool is_short = w->end < w->start + GIL_STACK_NS;

	if (!t)
		return NULL;
	if (!t->again || number != t->number + 1) {
		t->attempt++;
		t->attempt_start = w->start;
		t->stack = 0;
		if (w->stack && is_short)
			t->usual = w->stack;
	}
	t->number = number;
	if (w->stack || !t->stack) {
		/* a long wait without a stack is one whose stack could not be read */
		t->stack = w->stack || !is_short ? w->stack : t->usual;
		t->estimated = !w->stack && t->stack;
	}
	return t;
}

static int emit_wait(struct gil_model *m, struct gil_state *g, const struct view *v, const struct fields *f,
		     struct gil_timed_wait *w)
{
	struct waiter *t = waiter_of(m, w, get(v, f->number));
	int err;

	if (!t)
		return -ENOMEM;
	w->first = t->attempt_start == w->start;
	if (w->first && w->stack)
		gil_line__waits_at(g->line, w->start, w->tid, w->stack);
	w->stack = t->stack;
	t->again = get(v, f->locked) && !(get(v, f->common.flags) & (EVENT_OPEN | EVENT_RETURN_NOT_SEEN));
	add_busy(m, g, w->start, w->end);
	err = gil_line__wait(g->line, &(struct gil_pending){ w->tid, t->stack, w->start, w->end, t->attempt,
							     t->attempt_start, t->estimated, w->weight });
	return err || !m->listener.wait ? err : m->listener.wait(w, m->arg);
}

static int on_wait(struct gil_model *m, struct gil_state *g, const struct view *v, const struct fields *f,
		   const struct gil_key *key)
{
	struct gil_timed_wait w = {
		.gil = *key,
		.tid = (u32)get(v, f->common.tid),
		.stack = (u32)get(v, f->stack),
		.start = get(v, f->common.start),
		.end = get(v, f->common.time),
		.result = view__s64(v, f->result),
		.waiters = (u32)get(v, f->waiters),
		.weight = weight(m),
	};
	int err = emit_wait(m, g, v, f, &w);

	if (err || !w.result)
		return err;
	/* without field `locked` it is unknown whether the waiter took the GIL */
	if (f->locked && !get(v, f->locked))
		err = gil_line__take(g->line, w.end, w.tid, (u32)get(v, f->dropper));
	else if (w.result == GIL_WAIT_TIMEOUT)
		err = gil_line__seen(g->line, w.end, (u32)get(v, f->holder), (u32)get(v, f->holder_stack));
	return err;
}

static int on_hold(struct gil_model *m, struct gil_state *g, const struct view *v, const struct fields *f,
		   const struct gil_key *key)
{
	u64 flags = get(v, f->common.flags);
	struct gil_held h = {
		.gil = *key,
		.tid = (u32)get(v, f->common.tid),
		.stack = (u32)get(v, f->stack),
		.start = flags & EVENT_NO_DURATION ? 0 : get(v, f->common.start),
		.end = get(v, f->common.time),
		.open = flags & EVENT_OPEN,
		.weight = weight(m),
	};
	int err = gil_line__held(g->line, h.start, h.end, h.tid, h.stack);

	return err || !h.start || !m->listener.held ? err : m->listener.held(&h, m->arg);
}

static int on_event(const struct view *v, void *arg)
{
	struct gil_model *m = arg;
	const struct fields *f = m->fields;
	struct gil_state *g;
	struct gil_key key;
	u64 time;
	u32 slice;
	int err = 0;

	while (f->event != v->event)
		f++;
	time = get(v, f->common.time);
	key = (struct gil_key){ get(v, f->gil), (u32)get(v, f->common.pid), 0 };
	slice = slice_at(m, time);
	if (slice != m->slice)
		err = end_lines(m);
	m->slice = slice;
	g = err ? NULL : state_of(m, &key);
	if (!g)
		return err ? err : -ENOMEM;
	g->last = time;
	switch (f - m->fields) {
	case KIND_WAIT:
		err = on_wait(m, g, v, f, &key);
		break;
	case KIND_DROP:
		err = gil_line__drop(g->line, time, (u32)get(v, f->common.tid), (u32)get(v, f->stack),
				     get(v, f->is_short));
		break;
	case KIND_HOLD:
		err = on_hold(m, g, v, f, &key);
		break;
	default:
		return m->listener.switched ?
			       m->listener.switched(&(struct gil_switched){ key, (u32)get(v, f->common.tid),
									    get(v, f->common.start), time, weight(m) },
						    m->arg) :
			       0;
	}
	return err ? err : gil_line__cut(g->line, time, false, segment, m);
}

static int on_rows(const struct rows *rows, void *arg)
{
	struct gil_model *m = arg;

	return order__add_begun(m->order, rows, m->read_from, m->read_to == ~0ull ? ~0ull : m->read_to - 1);
}

static int on_slices(const struct rows *rows, void *arg)
{
	struct gil_model *m = arg;
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct common_fields f = common_fields__of(v.event);
	const struct schema_field *pause = schema_event__field(v.event, "pause");

	for (; v.i < rows__count(rows); v.i++) {
		struct slice s = { get(&v, f.start), get(&v, f.time), get(&v, pause) };

		/* sonde writes slices in order; others are ignored */
		if (s.from > s.to || (m->n_slices && s.from < m->slices[m->n_slices - 1].to))
			continue;
		if (!array__push(m->slices, m->n_slices, s))
			return -ENOMEM;
	}
	return 0;
}

static void sum_slices(const struct gil_model *m, struct gil_slices *out)
{
	u32 i;

	*out = (struct gil_slices){ .n = m->n_slices };
	for (i = 0; i < m->n_slices; i++) {
		out->measured += m->slices[i].to - m->slices[i].from;
		out->paused += m->slices[i].pause;
	}
}

static int read_slices(struct gil_model *m)
{
	const struct schema_event *kinds[2] = { schema__event(trace__schema(m->trace), "gil_slice"), NULL };
	struct trace_filter slices = {
		.kinds = kinds,
		.from = m->from > MARGIN ? m->from - MARGIN : 0,
		.to = m->to ? m->to + MARGIN : 0,
	};

	return kinds[0] ? trace__read(m->trace, &slices, on_slices, m) : 0;
}

static void find_kinds(struct gil_model *m)
{
	const struct schema *schema = trace__schema(m->trace);
	u32 i, n = 0;

	for (i = 0; i < KINDS; i++) {
		const struct schema_event *e = schema__event(schema, kind_names[i]);

		if (!e)
			continue;
		m->kinds[n++] = e;
		m->fields[i] = (struct fields){
			.event = e,
			.common = common_fields__of(e),
			.gil = schema_event__field(e, "gil"),
			.result = schema_event__field(e, "result"),
			.dropper = schema_event__field(e, "dropper"),
			.holder = schema_event__field(e, "holder"),
			.locked = schema_event__field(e, "locked"),
			.number = schema_event__field(e, "number"),
			.stack = schema_event__field(e, "stack"),
			.holder_stack = schema_event__field(e, "holder_stack"),
			.waiters = schema_event__field(e, "waiters"),
			.is_short = schema_event__field(e, "is_short"),
		};
	}
}

static int emit_busy(struct gil_model *m)
{
	const struct gil_state *g;
	int err = 0;
	u32 i;

	for (i = 0; !err && m->listener.busy && i < m->gils.n; i++) {
		g = map__value(&m->gils, i);
		err = m->listener.busy(map__key(&m->gils, i), g->busy_ns, m->arg);
	}
	return err;
}

int gil_model__new(struct gil_model **out, struct trace *t, u64 from, u64 to, const struct trace_ids *pids,
		   const struct gil_listener *listener, void *arg)
{
	struct gil_model *m = calloc(1, sizeof(*m));

	*out = m;
	if (!m)
		return -ENOMEM;
	*m = (struct gil_model){ .trace = t, .from = from, .to = to, .listener = *listener, .arg = arg };
	m->pids = pids ? *pids : (struct trace_ids){};
	m->read_to = from > MARGIN ? from - MARGIN : 0;
	map__init(&m->gils, sizeof(struct gil_key), sizeof(struct gil_state));
	map__init(&m->waiters, sizeof(struct waiter_key), sizeof(struct waiter));
	m->order = order__new(on_event, m);
	if (!m->order)
		return -ENOMEM;
	find_kinds(m);
	return m->kinds[0] ? read_slices(m) : 0;
}

/* Ends lines without recent events: their threads no longer wait, as a waiter has an event every switch interval. */
static int end_silent_lines(struct gil_model *m)
{
	int err = 0;

	for (u32 i = 0; !err && i < m->gils.n; i++) {
		struct gil_state *g = map__value(&m->gils, i);

		if (g->line && g->last < m->read_to && m->read_to - g->last > SILENCE)
			err = gil_line__cut(g->line, 0, true, segment, m);
	}
	return err;
}

/* Reads on until `end`, 0: all. */
static int read_until(struct gil_model *m, u64 end)
{
	struct trace_filter filter = { .kinds = m->kinds, .from = m->read_to, .to = end, .pids = m->pids };
	int err;

	if (!m->kinds[0] || (end && end <= m->read_to))
		return 0;
	/* the first reading includes rows that began before */
	m->read_from = m->started ? m->read_to : 0;
	m->started = true;
	m->read_to = end ? end : ~0ull;
	err = trace__read(m->trace, &filter, on_rows, m);
	return err ? err : order__finish(m->order);
}

int gil_model__advance(struct gil_model *m, u64 to)
{
	int err = read_until(m, to && to + AHEAD > to ? to + AHEAD : 0);

	return err ? err : end_silent_lines(m);
}

void gil_model__free(struct gil_model *m)
{
	if (!m)
		return;
	for (u32 i = 0; i < m->gils.n; i++)
		gil_line__free(((struct gil_state *)map__value(&m->gils, i))->line);
	map__free(&m->gils);
	map__free(&m->waiters);
	free(m->slices);
	order__free(m->order);
	free(m);
}

int gil_model__read(struct trace *t, u64 from, u64 to, const struct trace_ids *pids,
		    const struct gil_listener *listener, void *arg, struct gil_slices *slices)
{
	struct gil_model *m;
	int err = gil_model__new(&m, t, from, to, pids, listener, arg);

	if (!err)
		err = read_until(m, to && to + MARGIN > to ? to + MARGIN : 0);
	if (!err)
		err = end_lines(m);
	if (!err)
		err = emit_busy(m);
	if (slices && m)
		sum_slices(m, slices);
	gil_model__free(m);
	return err;
}
