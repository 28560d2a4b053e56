// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/capture.h"

#include <stdlib.h>
#include <string.h>

#include "record/parts.h"
#include "util/array.h"

/* Ranges of a process that ended longer ago are forgotten: no record comes later than the shim's last ones. */
#define FORGET_NS     10000000000ULL
#define PROCESSES_MAX 16384 /* more are not recorded */
#define RANGES_MAX    16384 /* of a process: its first ones are forgotten, too */

struct captured_range {
	u64 from, to; /* ns; to 0: it has not ended */
};

struct captured_process {
	struct captured_range *ranges; /* by time */
	u32 n;
	u32 number; /* of its last range */
	bool is_over; /* it has ended */
	bool is_unseen; /* a range ended whose begin was not seen */
	bool is_warned;
};

void capture__open(struct session *s)
{
	map__init(&s->capture.processes, sizeof(u32), sizeof(struct captured_process));
}

void capture__close(struct capture *c)
{
	MAP_EACH(struct captured_process *p, &c->processes)
		free(p->ranges);
	map__free(&c->processes);
	active__free(&c->active);
}

void capture__start(struct session *s)
{
	if (s->args->capture)
		active__start(s, &s->capture.active, s->time.started);
}

static void forget_first(struct captured_process *p, u32 n)
{
	p->n -= n;
	memmove(p->ranges, p->ranges + n, p->n * sizeof(*p->ranges));
}

/*
 * The range that began at this time, which is new with the first record of it: those of one process may come from
 * several CPUs, in any order. NULL: without memory the range counts as paused.
 */
static struct captured_range *range_from(struct captured_process *p, u64 from)
{
	u32 i = p->n;

	while (i && p->ranges[i - 1].from > from)
		i--;
	if (i && p->ranges[i - 1].from == from)
		return &p->ranges[i - 1];
	if (p->n == RANGES_MAX) {
		forget_first(p, RANGES_MAX / 2);
		i = i > RANGES_MAX / 2 ? i - RANGES_MAX / 2 : 0;
	}
	if (!array__room(p->ranges, p->n))
		return NULL;
	memmove(&p->ranges[i + 1], &p->ranges[i], (p->n - i) * sizeof(*p->ranges));
	p->ranges[i] = (struct captured_range){ .from = from };
	p->n++;
	return &p->ranges[i];
}

void capture__note(struct session *s, const struct event *e, u32 size)
{
	const struct meta_range *r = (const struct meta_range *)e;
	struct capture *c = &s->capture;
	struct captured_range *range;
	struct captured_process *p;

	if (e->id != ID_meta_range || size < sizeof(*r) || c->processes.n >= PROCESSES_MAX)
		return;
	p = map__get(&c->processes, &e->pid);
	if (!p)
		return;
	if (r->change == RANGE_UNSEEN) {
		p->is_unseen = true;
		return;
	}
	range = range_from(p, r->change == RANGE_BEGINS ? e->time : r->since);
	if (!range)
		return;
	p->number = r->number > p->number ? r->number : p->number;
	p->is_over = false;
	if (r->change == RANGE_BEGINS)
		return;
	range->to = e->time;
	active__add(&c->active, r->since, e->time);
}

static const struct captured_range *range_at(const struct captured_process *p, u64 time)
{
	u32 from = 0, to = p ? p->n : 0;

	while (from < to) {
		u32 middle = from + (to - from) / 2;

		if (p->ranges[middle].from <= time)
			from = middle + 1;
		else
			to = middle;
	}
	if (!from || (p->ranges[from - 1].to && time >= p->ranges[from - 1].to))
		return NULL;
	return &p->ranges[from - 1];
}

const void *capture__cut(struct session *s, const void *record, u32 size, void *copy)
{
	const struct event *e = record;
	const struct schema_event *kind = EVENT_FAMILY(e->id) ? schema__event_by_id(s->embedded.schema, e->id) : NULL;
	bool is_span = kind && kind->is_span && size >= sizeof(struct span);
	const struct captured_range *r;

	if (!s->args->capture || !kind || kind->role != EVENT_MEASURES || !e->pid)
		return record;
	r = range_at(map__find(&s->capture.processes, &e->pid), is_span ? ((const struct span *)e)->start : e->time);
	if (!r)
		return NULL;
	if (!is_span || !r->to || e->time <= r->to || size > RECORD_MAX)
		return record;
	memcpy(copy, record, size);
	((struct event *)copy)->time = r->to;
	((struct event *)copy)->flags |= EVENT_OPEN;
	if (kind->is_call && size >= sizeof(struct call))
		((struct call *)copy)->ret = 0;
	return copy;
}

static void warn_unseen(struct session *s, struct captured_process *p, u32 pid)
{
	if (!p->is_unseen || p->is_warned)
		return;
	p->is_warned = true;
	session__warn_of(s, session__user(s, pid),
			 "process %u: a capture range ends that began before the recording: nothing of it was recorded",
			 pid);
}

/* Removes the ranges of which no record can come any more. */
static void forget(struct captured_process *p, u64 now)
{
	u32 n = 0;

	while (n < p->n && p->ranges[n].to && p->ranges[n].to + FORGET_NS < now)
		n++;
	if (n)
		forget_first(p, n);
}

static bool is_open(const struct captured_process *p)
{
	return p->n && !p->ranges[p->n - 1].to;
}

/* The range of a process that has ended ends with it. */
static void follow_end(struct session *s, struct captured_process *p, u32 pid, u64 now)
{
	if (p->is_over || !session__has_ended(pid))
		return;
	p->is_over = true;
	if (!is_open(p))
		return;
	p->ranges[p->n - 1].to = now;
	active__add(&s->capture.active, p->ranges[p->n - 1].from, now);
}

void capture__tick(struct session *s, u64 now)
{
	u32 max = s->args->capture ? s->args->capture->max : 0;
	struct capture *c = &s->capture;
	u64 open_since = ~0ull, oldest;
	bool is_late, is_done = false, is_left = false;

	if (!s->args->capture)
		return;
	oldest = active__tick(s, &c->active, now, &is_late);
	MAP_EACH_ENTRY(struct captured_process *p, const u32 *pid, &c->processes) {
		follow_end(s, p, *pid, now);
		if (is_open(p) && p->ranges[p->n - 1].from < open_since)
			open_since = p->ranges[p->n - 1].from;
		is_done |= max && p->number >= max && !is_open(p);
		is_left |= p->number && (is_open(p) || (p->number < max && !p->is_over));
		forget(p, now);
		warn_unseen(s, p, *pid);
	}
	oldest = open_since < oldest ? open_since : oldest;
	active__write_pauses(s, &c->active, oldest, open_since);
	active__write_open_pause(s, &c->active, oldest);
	c->is_over = is_done && !is_left;
}

void capture__finish(struct session *s)
{
	if (!s->args->capture)
		return;
	MAP_EACH(struct captured_process *p, &s->capture.processes)
		if (is_open(p))
			active__add(&s->capture.active, p->ranges[p->n - 1].from, s->time.stopped);
	active__write_pauses(s, &s->capture.active, ~0ull, ~0ull);
}

void capture__warn(struct session *s)
{
	if (!s->args->capture)
		return;
	MAP_EACH(const struct captured_process *p, &s->capture.processes)
		if (p->number)
			return;
	session__warn(s, "no selected process began the range of --capture-range: nothing was recorded");
}

bool session__captures_ended(const struct session *s)
{
	return s->capture.is_over;
}
