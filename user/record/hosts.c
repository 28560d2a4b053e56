// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The families' host code, as the linker gathered it. */
#include "record/objects.h"
#include "util/array.h"

#include <stdlib.h>
#include <string.h>

extern const struct family_host *const __start_sonde_family_hosts[] __attribute__((weak));
extern const struct family_host *const __stop_sonde_family_hosts[] __attribute__((weak));

void family_host__each(struct session *s, void (*fn)(struct session *s, const struct family_host *h, void *arg),
		       void *arg)
{
	for (const struct family_host *const *h = __start_sonde_family_hosts; h < __stop_sonde_family_hosts; h++)
		fn(s, *h, arg);
}

const struct family_host *family_host__find(const char *name)
{
	for (const struct family_host *const *h = __start_sonde_family_hosts; h < __stop_sonde_family_hosts; h++)
		if (!strcmp((*h)->name, name))
			return *h;
	return NULL;
}

bool family_host__python_asked(struct session *s, const struct family_host *h)
{
	return h && h->python_option && session__option(s, h->name, h->python_option);
}

void *session__state(const struct session *s, u8 family)
{
	return s->host_states[family].own;
}

static bool follows(struct session *s, const struct family_host *h)
{
	return h->follows && (!h->follows_with || session__number(s, h->name, h->follows_with));
}

/* false: no memory for what the family keeps */
static bool begin(struct session *s, const struct family_host *h, struct host_state *state)
{
	if (state->begun)
		return state->own || !h->state;
	state->begun = true;
	if (h->state) {
		state->own = calloc(1, h->state);
		if (!state->own)
			return false;
	}
	if (h->begin)
		h->begin(s);
	if (follows(s, h))
		session__run_iter(s, h->follows);
	return true;
}

/* The state of a host whose family is on and has begun, else NULL */
static struct host_state *begun(struct session *s, const struct family_host *h, u8 *family)
{
	const struct schema_family *f = schema__family(s->schema, h->name);

	if (!f || !s->family_on[f->id])
		return NULL;
	*family = f->id;
	return begin(s, h, &s->host_states[f->id]) ? &s->host_states[f->id] : NULL;
}

static void tick(struct session *s, const struct family_host *h, void *arg)
{
	u64 now = *(u64 *)arg;
	struct host_state *state;
	u8 family;

	state = begun(s, h, &family);
	if (!state)
		return;
	state->followed = 0;
	if (!h->tick || now < state->next_tick)
		return;
	state->next_tick = now + h->tick_ns;
	h->tick(s, now);
}

void hosts__tick(struct session *s, u64 now)
{
	family_host__each(s, tick, &now);
}

static void joined(struct session *s, const struct family_host *h, void *arg)
{
	u8 family;

	if (!begun(s, h, &family))
		return;
	if (follows(s, h))
		session__run_iter_of(s, h->follows, *(u32 *)arg);
	if (h->joined)
		h->joined(s, *(u32 *)arg);
}

void hosts__joined(struct session *s, u32 pid)
{
	family_host__each(s, joined, &pid);
}

void host__event(struct session *s, u8 family, const struct event *e, u32 size)
{
	const struct family_host *h = s->hosts[family];

	if (h && h->event && begin(s, h, &s->host_states[family]))
		h->event(s, e, size);
}

struct notify {
	const struct mapping *m;
	struct object *o;
};

/* A process that becomes a runtime has threads already. Option `all` has followed them from the start. */
static void follow(struct session *s, const struct family_host *h, struct host_state *state, u32 pid)
{
	if (!follows(s, h) || pid == state->followed || session__option(s, h->name, "all"))
		return;
	state->followed = pid;
	session__run_iter_of(s, h->follows, pid);
}

/* Families that look for runtimes are called for runtimes only, the others for every mapping. */
static void mapped(struct session *s, const struct family_host *h, void *arg)
{
	struct notify *n = arg;
	struct host_state *state;
	u8 family;
	bool is;

	state = begun(s, h, &family);
	if (!state)
		return;
	is = n->o->facts && (n->o->families & FAMILY_BIT(family));
	if (is && family_host__python_asked(s, h))
		python__mapped(s, n->o->facts, n->m);
	if (h->mapped && !h->is_runtime)
		h->mapped(s, NULL, NULL, n->m);
	if (!h->is_runtime || !is)
		return;
	if (h->mapped)
		h->mapped(s, n->o->facts, n->o->facts->own[FAMILY_INDEX(family)], n->m);
	follow(s, h, state, n->m->pid);
}

void hosts__mapped(struct session *s, struct object *o, const struct mapping *m)
{
	struct notify n = { .m = m, .o = o };

	family_host__each(s, mapped, &n);
}

static void note(struct session *s, const struct family_host *h, void *arg)
{
	const struct schema_family *f = schema__family(s->schema, h->name);

	if (f)
		s->hosts[f->id] = h;
}

void hosts__open(struct session *s)
{
	family_host__each(s, note, NULL);
}

void hosts__free(struct session *s)
{
	for (u32 i = 0; i < ARRAY_LEN(s->hosts); i++) {
		if (s->hosts[i] && s->hosts[i]->end && s->host_states[i].own)
			s->hosts[i]->end(s);
		free(s->host_states[i].own);
		s->host_states[i].own = NULL;
	}
}
