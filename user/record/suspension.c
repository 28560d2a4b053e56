// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/suspension.h"

#include "attach/steering.h"
#include "record/drain/losses.h"
#include "record/parts.h"

#include <bpf/bpf.h>
#include <string.h>

/*
 * Programs that stay attached in a suspended recording, such as that of the sampling clock, check this map themselves.
 */
STEERING(suspended) = {
	.map = "recording_suspended",
	.key_size = sizeof(u32),
	.value_size = sizeof(u32),
};

static void suspend_family(struct session *s, const struct family_host *h, u8 family, void *arg)
{
	bool suspend = *(bool *)arg;
	int err;

	if (!h->set_suspended)
		return;
	if (suspend)
		h->set_suspended(s, true);
	err = suspend ? session__detach_family(s, h->name) : session__attach_family(s, h->name);
	if (err)
		session__warn(s, "family %s: cannot %s its probes: %s", h->name, suspend ? "detach" : "attach again",
			      strerror(-err));
	/* what is not attached is missing from here on, and the family must not take it for recorded */
	if (!suspend && err)
		losses__add(s, family, LOSS_UNPROBED, 1, s->suspension.suspended_since, session__now(s), 0);
	else if (!suspend)
		h->set_suspended(s, false);
}

void session__set_suspended(struct session *s, bool suspend)
{
	u32 zero = 0, value = suspend;

	if (s->suspension.is_suspended == suspend)
		return;
	s->suspension.is_suspended = suspend;
	s->suspension.suspended_since = session__now(s);
	session__map_set(s, "recording_suspended", &zero, &value, BPF_ANY);
	hosts__each(s, suspend_family, &suspend);
}

void session__begin_pause(struct session *s, u64 time)
{
	if (!s->suspension.pause_since)
		s->suspension.pause_since = time;
}

/* Returns the part of the pause, from its last written part to `until`, that --cost-limit left out, too. */
static u64 left_out_twice(const struct session *s, u64 until)
{
	return s->suspension.pause_since ? slices__left_out(&s->slices, s->suspension.pause_since, until) : 0;
}

bool suspension__is_on(const struct suspension *u)
{
	return u->is_suspended;
}

bool suspension__was_on(const struct suspension *u, u64 time)
{
	return u->is_suspended == (time >= u->suspended_since);
}

u64 suspension__unmeasured(const struct session *s)
{
	u64 now = session__now(s), sum = slices__sum(&s->slices, now),
	    twice = s->suspension.unmeasured + left_out_twice(s, now);

	return sum > twice ? sum - twice : 0;
}

/* A pause is written in parts, so that a trace that is cut off has all but the last second of it. */
void session__write_pause(struct session *s, u64 until)
{
	struct meta_pause e = { .event = { .time = until, .id = ID_meta_pause }, .start = s->suspension.pause_since };

	if (!s->suspension.pause_since || until <= s->suspension.pause_since)
		return;
	session__emit(s, &e, sizeof(e));
	s->suspension.paused_ns += until - s->suspension.pause_since;
	s->suspension.unmeasured += left_out_twice(s, until);
	s->suspension.pause_since = until;
}

void session__end_pause(struct session *s, u64 time)
{
	session__write_pause(s, time);
	s->suspension.pause_since = 0;
}

void session__set_paused(struct session *s, bool paused)
{
	if (paused == (s->suspension.pause_since != 0))
		return;
	if (paused)
		session__begin_pause(s, session__now(s));
	else
		drain__all(s); /* records of the pause are discarded while it lasts */
	session__set_suspended(s, paused);
	if (!paused)
		session__end_pause(s, session__now(s));
}

/*
 * Was the event measured in the pause? Spans that began before the pause are kept: each ends an interval of which a
 * part lies outside of the pause.
 */
bool suspension__discards(const struct session *s, const struct event *e, u32 size)
{
	const struct schema_event *kind;

	if (!s->suspension.is_suspended || !EVENT_FAMILY(e->id))
		return false;
	kind = schema__event_by_id(s->embedded.schema, e->id);
	if (!kind || kind->role != EVENT_MEASURES)
		return false;
	if (!kind->is_span)
		return e->time >= s->suspension.suspended_since;
	return size >= sizeof(struct span) && ((const struct span *)e)->start >= s->suspension.suspended_since;
}

void session__end_schedule(struct session *s)
{
	s->suspension.schedule_ended = true;
}

bool session__schedule_ended(const struct session *s)
{
	return s->suspension.schedule_ended;
}
