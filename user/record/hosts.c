// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Calls the families' host code, which is registered in a linker section. */
#include "record/objects.h"
#include "util/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

REGISTRY(family_host, sonde_family_hosts);

void family_host__each(struct session *s, void (*fn)(struct session *s, const struct family_host *h, void *arg),
		       void *arg)
{
	REGISTRY_EACH(sonde_family_hosts, h)
		fn(s, *h, arg);
}

const struct family_host *family_host__find(const char *name)
{
	return REGISTRY_FIND(sonde_family_hosts, name);
}

bool family_host__python_requested(struct session *s, const struct family_host *h)
{
	return h && h->python_option && session__option(s, h->name, h->python_option);
}

void *session__state(const struct session *s, u8 family)
{
	return s->host_states[family].data;
}

bool family_host__follows(struct session *s, const struct family_host *h)
{
	return h->follow_iterator && (!h->follows_with || session__number(s, h->name, h->follows_with));
}

static void begin(struct session *s, const struct family_host *h, struct host_state *state)
{
	if (state->has_begun)
		return;
	state->has_begun = true;
	if (h->begin)
		h->begin(s);
	if (family_host__follows(s, h))
		session__run_iter(s, h->follow_iterator);
}

/* Returns the state of a host whose family is on and has begun, else NULL. */
static struct host_state *begun_state(struct session *s, const struct family_host *h, u8 *family)
{
	const struct schema_family *f = schema__family(s->schema, h->name);

	if (!f || !s->family_on[f->id])
		return NULL;
	*family = f->id;
	begin(s, h, &s->host_states[f->id]);
	return &s->host_states[f->id];
}

static void tick(struct session *s, const struct family_host *h, void *arg)
{
	u64 now = *(u64 *)arg;
	struct host_state *state;
	u8 family;

	state = begun_state(s, h, &family);
	if (!state)
		return;
	state->last_followed = 0;
	if (!h->tick || now < state->next_tick)
		return;
	state->next_tick = now + h->tick_ns;
	h->tick(s, now);
}

void hosts__tick(struct session *s, u64 now)
{
	family_host__each(s, tick, &now);
}

static void process_selected(struct session *s, const struct family_host *h, void *arg)
{
	u8 family;

	if (!begun_state(s, h, &family))
		return;
	if (family_host__follows(s, h))
		session__run_iter_of(s, h->follow_iterator, *(u32 *)arg);
	if (h->process_selected)
		h->process_selected(s, *(u32 *)arg);
}

void hosts__process_selected(struct session *s, u32 pid)
{
	family_host__each(s, process_selected, &pid);
}

bool host__cut(struct session *s, void *record, u32 size)
{
	struct event *e = record;
	const struct family_host *h = size < sizeof(*e) ? NULL : s->hosts[FAMILY_INDEX(e->id)];

	return !h || !h->cut || h->cut(s, e, size);
}

void host__event(struct session *s, u8 family, const struct event *e, u32 size)
{
	const struct family_host *h = family < FAMILY_MAX ? s->hosts[family] : NULL;

	if (!h || !h->event)
		return;
	begin(s, h, &s->host_states[family]);
	h->event(s, e, size);
}

struct notify {
	const struct mapping *m;
	struct object *o;
};

/* Follows the existing threads of a process that becomes a runtime; with option `all` they are followed already. */
static void follow(struct session *s, const struct family_host *h, struct host_state *state, u32 pid)
{
	if (!family_host__follows(s, h) || pid == state->last_followed || session__option(s, h->name, "all"))
		return;
	state->last_followed = pid;
	session__run_iter_of(s, h->follow_iterator, pid);
}

static void follow_busy(struct session *s, const struct family_host *h, void *arg)
{
	u8 family;
	struct host_state *state = h->is_runtime ? begun_state(s, h, &family) : NULL;

	if (state)
		follow(s, h, state, *(u32 *)arg);
}

void session__follow(struct session *s, u32 pid)
{
	if (s->filter_need || process__get(s, pid) & PROCESS_RUNTIME)
		return;
	process__set(s, pid, PROCESS_RUNTIME);
	family_host__each(s, follow_busy, &pid);
}

/* Families with is_runtime are called only for their runtimes, the others for every mapping. */
static void mapped(struct session *s, const struct family_host *h, void *arg)
{
	struct notify *n = arg;
	struct host_state *state;
	u8 family;
	bool is;

	state = begun_state(s, h, &family);
	if (!state)
		return;
	is = n->o->facts && (n->o->families & FAMILY_BIT(family));
	if (is && (h->python || family_host__python_requested(s, h)))
		python__mapped(s, n->o->facts, n->m);
	if (h->object_mapped && !h->is_runtime)
		h->object_mapped(s, NULL, NULL, n->m);
	if (!h->is_runtime || !is)
		return;
	if (h->object_mapped)
		h->object_mapped(s, n->o->facts, n->o->facts->family_facts[family], n->m);
	follow(s, h, state, n->m->pid);
}

void hosts__mapped(struct session *s, struct object *o, const struct mapping *m)
{
	struct notify n = { .m = m, .o = o };

	family_host__each(s, mapped, &n);
}

static void open_host(struct session *s, const struct family_host *h, void *arg)
{
	const struct schema_family *f = schema__family(s->schema, h->name);
	void *own = f && s->family_on[f->id] ? calloc(1, h->state + 1) : NULL;

	if (!f || !s->family_on[f->id])
		return;
	if (!own) {
		*(int *)arg = -ENOMEM;
		return;
	}
	s->hosts[f->id] = h;
	s->host_states[f->id].data = own;
	if (h->prepare)
		h->prepare(s);
}

int hosts__open(struct session *s)
{
	int err = 0;

	family_host__each(s, open_host, &err);
	return err;
}

void hosts__free(struct session *s)
{
	for (u32 i = 0; i < ARRAY_LEN(s->hosts); i++) {
		if (s->hosts[i] && s->hosts[i]->end && s->host_states[i].data)
			s->hosts[i]->end(s);
		free(s->host_states[i].data);
		s->host_states[i].data = NULL;
	}
}
