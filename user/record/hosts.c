// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Calls the families' host code, which is registered in a linker section. */
#include "record/hosts.h"

#include "record/discover/objects.h"
#include "record/parts.h"
#include "record/stacks/python.h"

#include <errno.h>
#include <stdlib.h>

REGISTRY(family_host, sonde_family_hosts);

void hosts__each(struct session *s, void (*fn)(struct session *s, const struct family_host *h, u8 family, void *arg),
		 void *arg)
{
	REGISTRY_EACH(sonde_family_hosts, h) {
		const struct schema_family *f = schema__family(s->embedded.schema, (*h)->name);

		if (f && s->load.family_on[f->id])
			fn(s, *h, f->id, arg);
	}
}

const struct family_host *hosts__of(const struct session *s, u32 family)
{
	return s->hosts.list[family];
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
	return s->hosts.states[family].data;
}

bool family_host__follows(struct session *s, const struct family_host *h)
{
	return h->follow_iterator && (!h->follows_with || session__number(s, h->name, h->follows_with));
}

/* Calls `begin` if it was not called yet. Returns the family's state. */
static struct host_state *begin_host(struct session *s, const struct family_host *h, u8 family)
{
	struct host_state *state = &s->hosts.states[family];

	if (state->has_begun)
		return state;
	state->has_begun = true;
	if (h->begin)
		h->begin(s);
	if (family_host__follows(s, h))
		session__run_iter(s, h->follow_iterator, 0);
	return state;
}

static void tick_host(struct session *s, const struct family_host *h, u8 family, void *arg)
{
	struct host_state *state = begin_host(s, h, family);
	u64 now = *(u64 *)arg;

	state->last_followed = 0;
	if (!h->tick || now < state->next_tick)
		return;
	state->next_tick = now + h->tick_ns;
	h->tick(s, now);
}

void hosts__tick(struct session *s, u64 now)
{
	hosts__each(s, tick_host, &now);
}

static void pass_selected(struct session *s, const struct family_host *h, u8 family, void *arg)
{
	begin_host(s, h, family);
	if (family_host__follows(s, h))
		session__run_iter(s, h->follow_iterator, *(u32 *)arg);
	if (h->process_selected)
		h->process_selected(s, *(u32 *)arg);
}

void hosts__process_selected(struct session *s, u32 pid)
{
	hosts__each(s, pass_selected, &pid);
}

bool host__cut(struct session *s, void *record, u32 size)
{
	struct event *e = record;
	const struct family_host *h = size < sizeof(*e) ? NULL : s->hosts.list[FAMILY_INDEX(e->id)];

	return !h || !h->cut || h->cut(s, e, size);
}

void host__event(struct session *s, u8 family, const struct event *e, u32 size)
{
	const struct family_host *h = family < FAMILY_MAX ? s->hosts.list[family] : NULL;

	if (!h || !h->event)
		return;
	begin_host(s, h, family);
	h->event(s, e, size);
}

struct mapped_object {
	const struct mapping *m;
	struct object *o;
};

/* Follows the existing threads of a process that becomes a runtime; with option `all` they are followed already. */
static void follow_process(struct session *s, const struct family_host *h, struct host_state *state, u32 pid)
{
	if (!family_host__follows(s, h) || pid == state->last_followed || session__option(s, h->name, "all"))
		return;
	state->last_followed = pid;
	session__run_iter(s, h->follow_iterator, pid);
}

static void follow_busy(struct session *s, const struct family_host *h, u8 family, void *arg)
{
	if (h->is_runtime)
		follow_process(s, h, begin_host(s, h, family), *(u32 *)arg);
}

void session__follow(struct session *s, u32 pid)
{
	if (session__has_filter(s) || process__get(s, pid) & PROCESS_RUNTIME)
		return;
	process__set(s, pid, PROCESS_RUNTIME);
	hosts__each(s, follow_busy, &pid);
}

/* Families with is_runtime are called only for their runtimes, the others for every mapping. */
static void pass_mapped(struct session *s, const struct family_host *h, u8 family, void *arg)
{
	struct host_state *state = begin_host(s, h, family);
	struct mapped_object *n = arg;
	bool is_runtime = n->o->facts && (n->o->families & FAMILY_BIT(family));

	if (is_runtime && (h->python || family_host__python_requested(s, h)))
		python__mapped(s, n->o->facts, n->m);
	if (h->object_mapped && !h->is_runtime)
		h->object_mapped(s, NULL, NULL, n->m);
	if (!h->is_runtime || !is_runtime)
		return;
	if (h->object_mapped)
		h->object_mapped(s, n->o->facts, n->o->facts->family_facts[family], n->m);
	follow_process(s, h, state, n->m->pid);
}

void hosts__mapped(struct session *s, struct object *o, const struct mapping *m)
{
	hosts__each(s, pass_mapped, &(struct mapped_object){ .m = m, .o = o });
}

static void open_host(struct session *s, const struct family_host *h, u8 family, void *arg)
{
	void *own = calloc(1, h->state + 1);

	if (!own) {
		*(int *)arg = -ENOMEM;
		return;
	}
	s->hosts.list[family] = h;
	s->hosts.states[family].data = own;
	if (h->prepare)
		h->prepare(s);
}

int hosts__open(struct session *s)
{
	int err = 0;

	hosts__each(s, open_host, &err);
	return err;
}

void hosts__free(struct session *s)
{
	for (u32 i = 0; i < FAMILY_MAX; i++) {
		if (s->hosts.list[i] && s->hosts.list[i]->end && s->hosts.states[i].data)
			s->hosts.list[i]->end(s);
		free(s->hosts.states[i].data);
		s->hosts.states[i].data = NULL;
	}
}
