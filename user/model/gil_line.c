// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/gil_line.h"
#include "util/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/search.h"

struct gil_interval {
	u64 from, to;
	u64 since; /* when this hold began, as far as is known */
	u32 holder, stack;
	enum gil_holding holding;
	bool exact; /* `since` is when the holder took the GIL */
};

/* The holder's stack at a moment of its hold; with --gil=full only. */
struct sighting {
	u64 time;
	u32 stack;
};

#define SIGHTINGS 4096u

enum point { POINT_NONE, POINT_DROP, POINT_SEEN, POINT_TAKE };

struct gil_line {
	const struct gil_key *gil;
	struct gil_interval *intervals; /* a ring of `allocated`, a power of 2 */
	u32 first, n, allocated;
	struct gil_pending *pending;
	u32 n_cut, n_pending; /* the first n_cut have been cut */
	struct sighting sightings[SIGHTINGS]; /* the last ones, in order */
	u32 n_sightings;

	u64 known_until; /* the line is known up to here; 0: not at all yet */
	enum point last;
	u32 holder, stack; /* the holder at that time, and its stack */
	u64 since;
	bool has_holds;
	struct map short_hold_stacks; /* u32 thread -> u32 stack of its last short hold that has one */
};

struct gil_line *gil_line__new(const struct gil_key *gil)
{
	struct gil_line *l = calloc(1, sizeof(*l));

	if (l) {
		l->gil = gil;
		map__init(&l->short_hold_stacks, sizeof(u32), sizeof(u32));
	}
	return l;
}

void gil_line__free(struct gil_line *l)
{
	if (!l)
		return;
	free(l->intervals);
	free(l->pending);
	map__free(&l->short_hold_stacks);
	free(l);
}

static struct gil_interval *interval_at(const struct gil_line *l, u32 i)
{
	return &l->intervals[(l->first + i) & (l->allocated - 1)];
}

/* Makes room for one more interval: grows the ring, or drops the oldest interval. */
static int make_room(struct gil_line *l)
{
	u32 want = l->allocated ? 2 * l->allocated : 64, i;
	struct gil_interval *more;

	if (l->n < l->allocated)
		return 0;
	if (l->allocated == GIL_INTERVALS_MAX) {
		l->first++;
		l->n--;
		return 0;
	}
	more = calloc(want, sizeof(*more));
	if (!more)
		return -ENOMEM;
	for (i = 0; i < l->n; i++)
		more[i] = *interval_at(l, i);
	free(l->intervals);
	l->intervals = more;
	l->allocated = want;
	l->first = 0;
	return 0;
}

/* Where a running holder's stack could not be read, use the next stack that was read in the same hold. */
static void fill_in(struct gil_line *l)
{
	const struct gil_interval *last = interval_at(l, l->n - 1);
	u32 i;

	for (i = l->n - 1; last->stack && i-- > 0;) {
		struct gil_interval *s = interval_at(l, i);

		if (s->holding != GIL_HELD || s->holder != last->holder || s->since != last->since || s->stack)
			return;
		s->stack = last->stack;
	}
}

/* Extends the line to `to` by one interval. */
static int add_interval(struct gil_line *l, u64 to, enum gil_holding holding, u32 holder, u32 stack, bool exact)
{
	struct gil_interval *s;
	int err;

	if (!l->known_until || to <= l->known_until) {
		l->known_until = l->known_until ? l->known_until : to;
		return 0;
	}
	err = make_room(l);
	if (err)
		return err;
	s = interval_at(l, l->n++);
	*s = (struct gil_interval){ l->known_until, to,	  l->since ? l->since : l->known_until, holder, stack,
				    holding,	    exact };
	l->known_until = to;
	fill_in(l);
	return 0;
}

static void set_point(struct gil_line *l, enum point point, u32 holder, u32 stack)
{
	/* a sighting continues the hold; a drop or a taking begins a new one */
	if (point != POINT_SEEN || !l->since)
		l->since = l->known_until;
	l->last = point;
	l->holder = holder;
	l->stack = stack;
}

/* If tid is not the last known holder, it took the GIL unobserved since then: a new hold begins. */
static void begin_unobserved_hold(struct gil_line *l, u32 tid)
{
	if ((l->last == POINT_SEEN || l->last == POINT_TAKE) && l->holder && tid && l->holder != tid)
		l->since = l->known_until;
}

/* Without a stack the hold has that of the time-out before. */
static u32 stack_of_hold(const struct gil_line *l, u32 tid, u32 stack)
{
	return stack || l->last != POINT_SEEN || l->holder != tid ? stack : l->stack;
}

int gil_line__drop(struct gil_line *l, u64 time, u32 tid, u32 stack, bool is_short)
{
	u32 *usual;
	int err;

	if (l->has_holds)
		return 0;
	if (is_short && stack) {
		usual = map__get(&l->short_hold_stacks, &tid);
		if (!usual)
			return -ENOMEM;
		*usual = stack;
	}
	stack = stack_of_hold(l, tid, stack);
	begin_unobserved_hold(l, tid);
	err = add_interval(l, time, GIL_HELD, tid, stack, false);
	set_point(l, POINT_DROP, tid, stack);
	return err;
}

int gil_line__seen(struct gil_line *l, u64 time, u32 tid, u32 stack)
{
	int err;

	if (l->has_holds) {
		if (l->n_sightings == SIGHTINGS) {
			memmove(l->sightings, l->sightings + SIGHTINGS / 2, SIGHTINGS / 2 * sizeof(*l->sightings));
			l->n_sightings = SIGHTINGS / 2;
		}
		l->sightings[l->n_sightings++] = (struct sighting){ time, stack };
		return 0;
	}
	stack = stack_of_hold(l, tid, stack);
	begin_unobserved_hold(l, tid);
	err = add_interval(l, time, GIL_HELD, tid, stack, false);
	set_point(l, POINT_SEEN, tid, stack);
	return err;
}

int gil_line__take(struct gil_line *l, u64 time, u32 tid, u32 dropper)
{
	int err;

	if (l->has_holds)
		return 0;
	if (l->last == POINT_DROP)
		err = add_interval(l, time, GIL_FREE, 0, 0, false);
	else if (l->last == POINT_NONE)
		err = add_interval(l, time, dropper ? GIL_HELD : GIL_UNKNOWN, dropper, 0, false);
	else /* the holder's drop was not recorded; its stack is known if it was seen during the hold */
		err = add_interval(l, time, GIL_HELD, dropper ? dropper : l->holder,
				   !dropper || dropper == l->holder ? l->stack : 0, false);
	set_point(l, POINT_TAKE, tid, 0);
	return err;
}

/* Adds an interval that ends with each sighting, and one from the last sighting to the end of the hold. */
static int add_sighted(struct gil_line *l, u64 start, u64 end, u32 tid, u32 stack)
{
	u32 i, last = 0;
	int err = 0;

	for (i = 0; !err && i < l->n_sightings && l->sightings[i].time < end; i++) {
		if (l->sightings[i].time <= start)
			continue;
		last = l->sightings[i].stack;
		err = add_interval(l, l->sightings[i].time, GIL_HELD, tid, last, true);
	}
	memmove(l->sightings, l->sightings + i, (l->n_sightings - i) * sizeof(*l->sightings));
	l->n_sightings -= i;
	return err ? err : add_interval(l, end, GIL_HELD, tid, stack ? stack : last, true);
}

int gil_line__held(struct gil_line *l, u64 start, u64 end, u32 tid, u32 stack)
{
	int err = 0;

	l->has_holds = true;
	if (start && start > l->known_until)
		err = add_interval(l, start, l->known_until && l->last == POINT_DROP ? GIL_FREE : GIL_UNKNOWN, 0, 0,
				   false);
	l->since = start ? start : l->known_until;
	if (!err)
		err = add_sighted(l, start ? start : l->known_until, end, tid, stack);
	set_point(l, POINT_DROP, tid, stack);
	return err;
}

int gil_line__wait(struct gil_line *l, const struct gil_pending *wait)
{
	if (!l->known_until && wait->start)
		l->known_until = wait->start;
	if (!array__push(l->pending, l->n_pending, *wait))
		return -ENOMEM;
	return 0;
}

void gil_line__waits_at(struct gil_line *l, u64 time, u32 tid, u32 stack)
{
	bool found = false;
	u32 i;

	for (i = l->n; i-- > 0;) {
		struct gil_interval *s = interval_at(l, i);

		if (s->to > time)
			continue;
		if (s->to + GIL_DELAY < time || (found && s->holder != tid))
			return;
		if (s->holding != GIL_HELD || s->holder != tid)
			continue;
		if (s->stack)
			return;
		s->stack = stack;
		found = true;
	}
}

/* Index of the first interval that ends after `time`, n if none does. */
static u32 find(const struct gil_line *l, u64 time)
{
	return SEARCH(l->n, i, interval_at(l, i)->to <= time);
}

static void put_holder(const struct gil_line *l, struct gil_segment *p, const struct gil_interval *s,
		       const struct gil_pending *w)
{
	u64 since = s->exact || s->since > w->attempt_start ? s->since : w->attempt_start;
	const u32 *usual = s->stack ? NULL : map__find(&l->short_hold_stacks, &s->holder);

	/* the waiter can't be the holder: another thread took the GIL unobserved */
	if (s->holding == GIL_HELD && s->holder == w->tid)
		return;
	p->holding = s->holding;
	p->holder = s->holder;
	p->holder_stack = usual ? *usual : s->stack;
	p->estimated |= usual != NULL;
	p->hold_ns = p->to > since ? p->to - since : 0;
}

static int cut_wait(const struct gil_line *l, const struct gil_pending *w,
		    int (*fn)(const struct gil_segment *p, void *arg), void *arg)
{
	struct gil_segment p;
	u64 at = w->start;
	u32 i = find(l, at);
	int err = 0;

	while (!err && at < w->end) {
		const struct gil_interval *s = i < l->n ? interval_at(l, i) : NULL;

		p = (struct gil_segment){ .gil = *l->gil,
					  .waiter = w->tid,
					  .waiter_stack = w->stack,
					  .from = at,
					  .to = w->end,
					  .attempt = w->attempt,
					  .estimated = w->estimated,
					  .weight = w->weight };
		if (s && s->from > at) {
			p.to = s->from < w->end ? s->from : w->end;
		} else if (s) {
			p.to = s->to < w->end ? s->to : w->end;
			put_holder(l, &p, s, w);
			i++;
		}
		err = fn(&p, arg);
		at = p.to;
	}
	return err;
}

/* Extends the line over the pending waits: as far as is known, the last known holder still holds the GIL. */
static int extend_last_hold(struct gil_line *l)
{
	u64 end = l->known_until;
	u32 i, stack = l->stack;

	for (i = l->n_cut; i < l->n_pending; i++)
		end = l->pending[i].end > end ? l->pending[i].end : end;
	if (l->has_holds) {
		stack = l->n_sightings ? l->sightings[l->n_sightings - 1].stack : 0;
		return l->n_sightings ? add_interval(l, end, GIL_HELD, 0, stack, false) : 0;
	}
	return l->last == POINT_SEEN || l->last == POINT_TAKE ?
		       add_interval(l, end, GIL_HELD, l->holder, stack, false) :
		       0;
}

/* Removes the waits that have been cut, once they outnumber the others. */
static void forget_done(struct gil_line *l)
{
	if (l->n_cut < 16 || 2 * l->n_cut < l->n_pending)
		return;
	memmove(l->pending, l->pending + l->n_cut, (l->n_pending - l->n_cut) * sizeof(*l->pending));
	l->n_pending -= l->n_cut;
	l->n_cut = 0;
}

int gil_line__cut(struct gil_line *l, u64 now, bool all, int (*fn)(const struct gil_segment *p, void *arg), void *arg)
{
	bool full = l->n_pending - l->n_cut > GIL_PENDING;
	const struct gil_pending *w;
	int err = 0;

	if (all || (full && l->pending[l->n_cut].end > l->known_until))
		err = extend_last_hold(l);
	for (; !err && l->n_cut < l->n_pending; l->n_cut++) {
		w = &l->pending[l->n_cut];
		if (!all && (w->end > l->known_until || (!full && now < w->end + GIL_DELAY)))
			break;
		err = cut_wait(l, w, fn, arg);
		full = false;
	}
	forget_done(l);
	if (!all)
		return err;
	/* the next event has no relation to this line */
	l->n_pending = l->n_cut = 0;
	l->known_until = l->since = 0;
	l->last = POINT_NONE;
	l->holder = l->stack = 0;
	l->n_sightings = 0;
	return err;
}
