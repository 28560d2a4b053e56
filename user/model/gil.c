// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/gil.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/event.h"
#include "model/gil_line.h"
#include "model/gil_slice_list.h"
#include "model/order.h"
#include "probes/gil/gil.h"

/* ns that are read on both sides of the selected time, so that its first and last waits have their holders. */
#define MARGIN 1000000000ull
/*
 * gil_model__advance(to) reads on until AHEAD ns after `to`, because gil_line__cut() cuts a wait only when it gets an
 * event that is GIL_DELAY later than the wait's end. A GIL with waiters has such an event if its switch interval is
 * shorter than SILENCE (Python's default is 5 ms). With a longer one, end_silent_lines() also ends lines that have
 * waiters, and forgets their last known holder.
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
	struct overlap contended[OVERLAPS]; /* disjoint, by time */
	u32 n_contended;
	double contended_ns; /* of intervals that are no longer stored */
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
	/* Stack of the last attempt whose first wait was short and had one. Short waits without a stack get it. */
	u32 short_wait_stack;
	bool estimated; /* `stack` is that of another short wait of the thread */
	bool continues; /* the GIL was held at the end of the last wait: the next wait belongs to the same attempt */
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
	struct gil_slice_list slices;
	u32 slice; /* number of the slice of the last event; 0: none */
	struct order *order;
	u64 read_from, read_to; /* of the current reading; rows that began earlier have been read */
	bool started;
	struct gil_listener listener;
	void *arg;
};

static int emit_segment(const struct gil_segment *p, void *arg)
{
	struct gil_model *m = arg;

	return m->listener.on_segment ? m->listener.on_segment(p, m->arg) : 0;
}

static double weight(const struct gil_model *m)
{
	return gil_slice_list__weight(&m->slices, m->slice);
}

static double ns_of(const struct gil_model *m, const struct overlap *o)
{
	return (double)gil_slice_list__selected_ns(&m->slices, o->from, o->to) * weight(m);
}

static void retire_contended(struct gil_model *m, struct gil_state *g)
{
	u32 i;

	for (i = 0; i < g->n_contended; i++)
		g->contended_ns += ns_of(m, &g->contended[i]);
	g->n_contended = 0;
}

/* Waits arrive in order of their ends: a new one can only overlap the last intervals. */
static void add_contended(struct gil_model *m, struct gil_state *g, u64 from, u64 to)
{
	while (g->n_contended && g->contended[g->n_contended - 1].to >= from) {
		struct overlap *o = &g->contended[--g->n_contended];

		from = o->from < from ? o->from : from;
		to = o->to > to ? o->to : to;
	}
	if (g->n_contended == OVERLAPS) {
		g->contended_ns += ns_of(m, &g->contended[0]);
		memmove(g->contended, g->contended + 1, sizeof(g->contended) - sizeof(g->contended[0]));
		g->n_contended--;
	}
	g->contended[g->n_contended++] = (struct overlap){ from, to };
}

static struct gil_state *state_of(struct gil_model *m, const struct gil_key *key)
{
	struct gil_state *g = map__get(&m->gils, key);
	u32 i = m->gils.n - 1;

	if (g && !g->line)
		g->line = gil_line__new(map__key(&m->gils, i));
	return g && g->line ? g : NULL;
}

/*
 * Cuts all waits that are left, and begins new lines. Called at the end, and when the slice changes, because later
 * events have no relation to earlier ones then.
 */
static int end_lines(struct gil_model *m)
{
	struct gil_state *g;
	int err = 0;
	u32 i;

	for (i = 0; !err && i < m->gils.n; i++) {
		g = map__value(&m->gils, i);
		if (g->line)
			err = gil_line__cut(g->line, 0, true, emit_segment, m);
		retire_contended(m, g);
	}
	return err;
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
	if (!t->continues || number != t->number + 1) {
		t->attempt++;
		t->attempt_start = w->start;
		t->stack = 0;
		if (w->stack && is_short)
			t->short_wait_stack = w->stack;
	}
	t->number = number;
	if (w->stack || !t->stack) {
		/* a long wait without a stack is one whose stack could not be read */
		t->stack = w->stack || !is_short ? w->stack : t->short_wait_stack;
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
	t->continues = get(v, f->locked) && !(get(v, f->common.flags) & (EVENT_OPEN | EVENT_RETURN_NOT_SEEN));
	add_contended(m, g, w->start, w->end);
	err = gil_line__wait(g->line, &(struct gil_pending){ w->tid, t->stack, w->start, w->end, t->attempt,
							     t->attempt_start, t->estimated, w->weight });
	return err || !m->listener.on_wait ? err : m->listener.on_wait(w, m->arg);
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

	return err || !h.start || !m->listener.on_hold ? err : m->listener.on_hold(&h, m->arg);
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
	slice = gil_slice_list__at(&m->slices, time);
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
		return m->listener.on_switch ?
			       m->listener.on_switch(&(struct gil_switched){ key, (u32)get(v, f->common.tid),
									     get(v, f->common.start), time, weight(m) },
						     m->arg) :
			       0;
	}
	return err ? err : gil_line__cut(g->line, time, false, emit_segment, m);
}

static int on_rows(const struct rows *rows, void *arg)
{
	struct gil_model *m = arg;

	return order__add_begun(m->order, rows, m->read_from, m->read_to == ~0ull ? ~0ull : m->read_to - 1);
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

static int emit_contended(struct gil_model *m)
{
	const struct gil_state *g;
	int err = 0;
	u32 i;

	for (i = 0; !err && m->listener.on_contended && i < m->gils.n; i++) {
		g = map__value(&m->gils, i);
		err = m->listener.on_contended(map__key(&m->gils, i), g->contended_ns, m->arg);
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
	*m = (struct gil_model){ .trace = t, .listener = *listener, .arg = arg };
	m->pids = pids ? *pids : (struct trace_ids){};
	m->read_to = from > MARGIN ? from - MARGIN : 0;
	map__init(&m->gils, sizeof(struct gil_key), sizeof(struct gil_state));
	map__init(&m->waiters, sizeof(struct waiter_key), sizeof(struct waiter));
	m->order = order__new(on_event, m);
	if (!m->order)
		return -ENOMEM;
	find_kinds(m);
	return m->kinds[0] ? gil_slice_list__read(&m->slices, t, from, to, MARGIN) : 0;
}

/* Ends lines without an event in the last SILENCE ns: their threads no longer wait (see SILENCE). */
static int end_silent_lines(struct gil_model *m)
{
	int err = 0;

	for (u32 i = 0; !err && i < m->gils.n; i++) {
		struct gil_state *g = map__value(&m->gils, i);

		if (g->line && g->last < m->read_to && m->read_to - g->last > SILENCE)
			err = gil_line__cut(g->line, 0, true, emit_segment, m);
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
	MAPS_FREE(&m->gils, &m->waiters);
	gil_slice_list__free(&m->slices);
	order__free(m->order);
	free(m);
}

int gil_model__read(struct trace *t, u64 from, u64 to, const struct trace_ids *pids,
		    const struct gil_listener *listener, void *arg, u64 *paused)
{
	struct gil_model *m;
	int err = gil_model__new(&m, t, from, to, pids, listener, arg);

	if (!err)
		err = read_until(m, to && to + MARGIN > to ? to + MARGIN : 0);
	if (!err)
		err = end_lines(m);
	if (!err)
		err = emit_contended(m);
	if (paused && m)
		*paused = gil_slice_list__paused(&m->slices);
	gil_model__free(m);
	return err;
}
