// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Pauses of a recording, and families that measure in slices of time: stores the sites of their probes, so that these
 * can be detached and attached again.
 */
#include "attach/steering.h"
#include "record/internal.h"

#include "util/array.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The sites of one link; offsets and cookies are one block. */
struct paused_link {
	const struct program *program;
	enum attach_method method;
	struct link_sites sites;
};

/* Can the probes of this program be detached and attached again? */
static bool is_pausable(const struct program *p)
{
	const struct family_host *h = family_host__find(p->family->name);

	return h && h->has_slices && !(h->stays_attached && h->stays_attached(p->name));
}

u32 pause__object(const struct program *p, u32 object)
{
	return is_pausable(p) ? LINK_OBJECT(p->family->id, object) : object;
}

int pause__store(struct session *s, const struct program *p, enum attach_method method, const struct link_sites *sites)
{
	struct paused_link k = { .program = p, .method = method, .sites = *sites };
	u64 *block;

	if (!sites->n || sites->object == (sites->object & LINK_OBJECT_MASK))
		return 0;
	if (!array__room(s->paused_links, s->n_paused_links))
		return -ENOMEM;
	block = malloc(2 * sites->n * sizeof(u64));
	if (!block)
		return -ENOMEM;
	memcpy(block, sites->offsets, sites->n * sizeof(u64));
	memcpy(block + sites->n, sites->cookies, sites->n * sizeof(u64));
	k.sites.offsets = block;
	k.sites.cookies = block + sites->n;
	k.sites.fd = dup(sites->fd);
	if (k.sites.fd < 0) {
		free(block);
		return -errno;
	}
	s->paused_links[s->n_paused_links++] = k;
	return 0;
}

static void forget(struct paused_link *k)
{
	close(k->sites.fd);
	free((void *)k->sites.offsets);
}

void pause__forget(struct session *s, u32 object)
{
	u32 left = 0;

	for (u32 i = 0; i < s->n_paused_links; i++) {
		if (!object || (s->paused_links[i].sites.object & LINK_OBJECT_MASK) == object)
			forget(&s->paused_links[i]);
		else
			s->paused_links[left++] = s->paused_links[i];
	}
	s->n_paused_links = left;
	if (left)
		return;
	free(s->paused_links);
	s->paused_links = NULL;
}

static const struct schema_family *family_of(const struct session *s, const char *name)
{
	return schema__family(s->schema, name);
}

int session__pause(struct session *s, const char *family)
{
	return attacher__drop(s->attacher, LINK_OBJECT(family_of(s, family)->id, 0));
}

int session__resume(struct session *s, const char *family)
{
	const struct schema_family *f = family_of(s, family);
	int ret, err;

	/* of objects that were mapped in the pause the probes are attached already */
	ret = session__pause(s, family);
	for (u32 i = 0; i < s->n_paused_links; i++) {
		const struct paused_link *k = &s->paused_links[i];

		if (k->program->family != f)
			continue;
		err = session__link(s, k->program, k->method, &k->sites, NULL);
		if (!ret)
			ret = err;
	}
	return ret;
}

bool session__detaches_slowly(const struct session *s)
{
	return s->method.entry == ATTACH_PERF;
}

/* Programs that stay attached in a pause, such as that of the sampling clock, check this map themselves. */
STEERING(suspended) = {
	.map = "recording_suspended",
	.key_size = sizeof(u32),
	.value_size = sizeof(u32),
};

bool pause__is_suspended(const struct session *s, const struct program *p)
{
	const struct family_host *h = family_host__find(p->family->name);

	return s->pause.is_suspended && h && h->set_suspended && is_pausable(p);
}

static void suspend_family(struct session *s, const struct family_host *h, void *arg)
{
	const struct schema_family *f = family_of(s, h->name);
	bool suspend = *(bool *)arg;
	int err;

	if (!h->set_suspended || !f || !s->family_on[f->id])
		return;
	if (suspend)
		h->set_suspended(s, true);
	err = suspend ? session__pause(s, h->name) : session__resume(s, h->name);
	if (err)
		session__warn(s, "family %s: cannot %s its probes: %s", h->name, suspend ? "detach" : "attach again",
			      strerror(-err));
	/* what is not attached is missing from here on, and the family must not take it for recorded */
	if (!suspend && err)
		losses__add(s, f->id, LOSS_UNPROBED, 1, s->pause.suspended_since, session__now(s), 0);
	else if (!suspend)
		h->set_suspended(s, false);
}

void session__set_suspended(struct session *s, bool suspend)
{
	u32 zero = 0, value = suspend;

	if (s->pause.is_suspended == suspend)
		return;
	s->pause.is_suspended = suspend;
	s->pause.suspended_since = session__now(s);
	session__map_set(s, "recording_suspended", &zero, &value, BPF_ANY);
	family_host__each(s, suspend_family, &suspend);
}

void session__begin_pause(struct session *s, u64 time)
{
	if (!s->pause.since)
		s->pause.since = time;
}

/* Returns the part of the pause, from its last written part to `until`, that --cost-limit left out, too. */
static u64 left_out_twice(const struct session *s, u64 until)
{
	u64 from = s->pause.since > s->slices.paused_since ? s->pause.since : s->slices.paused_since;

	return s->pause.since && s->slices.paused_since && until > from ? until - from : 0;
}

u64 pause__unmeasured(const struct session *s)
{
	u64 now = session__now(s), sum = s->slices.unmeasured_ns, twice = s->pause.unmeasured + left_out_twice(s, now);

	sum += s->slices.paused_since ? now - s->slices.paused_since : 0;
	return sum > twice ? sum - twice : 0;
}

/* A pause is written in parts, so that a trace that is cut off has all but the last second of it. */
void session__write_pause(struct session *s, u64 until)
{
	struct meta_pause e = { .event = { .time = until, .id = ID_meta_pause }, .start = s->pause.since };

	if (!s->pause.since || until <= s->pause.since)
		return;
	session__emit(s, &e, sizeof(e));
	s->pause.sum += until - s->pause.since;
	s->pause.unmeasured += left_out_twice(s, until);
	s->pause.since = until;
}

void session__end_pause(struct session *s, u64 time)
{
	session__write_pause(s, time);
	s->pause.since = 0;
}

void session__set_paused(struct session *s, bool paused)
{
	if (paused == (s->pause.since != 0))
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
bool pause__discards(const struct session *s, const struct event *e, u32 size)
{
	const struct schema_event *kind;

	if (!s->pause.is_suspended || !EVENT_FAMILY(e->id))
		return false;
	kind = schema__event_by_id(s->schema, e->id);
	if (!kind || kind->role != EVENT_MEASURES)
		return false;
	if (!kind->is_span)
		return e->time >= s->pause.suspended_since;
	return size >= sizeof(struct span) && ((const struct span *)e)->start >= s->pause.suspended_since;
}

const struct step_schedule *session__schedule(const struct session *s)
{
	return s->args->schedule;
}

const char *session__step(const struct session *s)
{
	return s->args->step;
}

bool session__has_command(const struct session *s)
{
	return s->args->command_pid;
}

void session__end_schedule(struct session *s)
{
	s->pause.schedule_ended = true;
}

bool session__schedule_ended(const struct session *s)
{
	return s->pause.schedule_ended;
}
