// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The calls of one side, and other spans that families recorded: how many, and how long they took. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diff/role.h"
#include "diff/diff_private.h"
#include "model/syscalls.h"
#include "util/array.h"

struct call_key {
	u32 pid;
	u32 event; /* id of the kind */
	u64 function; /* probe, number of the system call or kernel */
};

struct calls {
	struct diff *d;
	u32 side;
	struct map names; /* struct call_key -> struct diff_key */
};

/* Is the span compared as a call? Spans of the scheduler, samples, processes and the GIL are compared as causes. */
static bool is_compared(const struct schema *s, const struct schema_event *e)
{
	static const char *const others[] = { "sched", "sample", "proc", "gil" };
	const struct schema_family *f = schema__family_by_id(s, (u8)EVENT_FAMILY(e->id));

	for (size_t i = 0; f && i < ARRAY_LEN(others); i++)
		if (!strcmp(f->name, others[i]))
			return false;
	return f && f->id && e->is_span;
}

/* Did the side record the family, or does it have events of the family for another reason? */
static bool has_family(const struct diff *d, u32 side, const char *family, const struct schema_event *e)
{
	return query__has_family(d->q[side], family) || trace__has(d->q[side]->trace, e->name);
}

static bool is_in_both(const struct diff *d, const struct schema_event *e, u32 side)
{
	const struct schema_family *f = schema__family_by_id(trace__schema(d->q[side]->trace), (u8)EVENT_FAMILY(e->id));

	return f && has_family(d, DIFF_BEFORE, f->name, e) && has_family(d, DIFF_AFTER, f->name, e);
}

struct naming {
	const struct schema_field *number, *kernel; /* NULL: none */
};

static const char *name_of(const struct calls *c, const struct view *v, const struct naming *n, u16 probe, char *buf,
			   size_t size)
{
	const struct names *names = c->d->q[c->side]->names;
	const char *name = syscalls__known_name(n->number, view__s64(v, n->number));

	if (name)
		return name;
	name = n->kernel ? names__text_of(names, v, n->kernel) : NULL;
	if (name) {
		snprintf(buf, size, "kernel %s", name);
		return buf;
	}
	name = probe ? names__probe(names, probe) : NULL;
	return name ? name : v->event->name;
}

static const struct diff_key *key_of(struct calls *c, const struct view *v, const struct common_fields *f,
				     const struct naming *n, int *err)
{
	struct call_key call = { .pid = (u32)view__s64(v, f->pid), .event = v->event->id };
	const struct schema_field *number = n->number ? n->number : n->kernel ? n->kernel : f->probe;
	struct diff_key *key;
	char text[256];

	call.function = (u64)view__s64(v, number);
	key = map__get(&c->names, &call);
	if (!key)
		*err = -ENOMEM;
	if (!key || key->process)
		return key;
	key->section = DIFF_CALLS;
	key->process = diff__text(c->d, role__process(c->d->q[c->side]->names, call.pid, text, sizeof(text)), err);
	key->name = diff__text(c->d, name_of(c, v, n, (u16)view__s64(v, f->probe), text, sizeof(text)), err);
	return key;
}

static int add_call(struct calls *c, const struct diff_key *key, u64 from, u64 to)
{
	int err = 0;
	struct diff_measure *m = diff__measure(c->d, key, c->side, &err);
	u32 bin = diff__bin(c->d, c->side, to);

	if (!m)
		return err;
	m->ns.bins[bin] += (float)(to - from);
	m->calls.bins[bin]++;
	m->calls.counting++;
	return stats__add(&m->times, &c->d->pool, to - from);
}

static int on_spans(const struct rows *rows, void *arg)
{
	struct common_fields f = common_fields__of(rows__event(rows));
	struct naming n = { schema_event__field(rows__event(rows), "nr"),
			    strcmp(rows__event(rows)->name, "gpu_kernel") ?
				    NULL :
				    schema_event__field(rows__event(rows), "name") };
	int err = 0;

	ROWS_WHILE(!err, v, rows) {
		u64 from = (u64)view__s64(&v, f.start), to = (u64)view__s64(&v, f.time);
		const struct diff_key *key;

		/* a call that has not ended has no duration yet */
		if (from > to || view__s64(&v, f.flags) & (EVENT_OPEN | EVENT_NO_DURATION))
			continue;
		key = key_of(arg, &v, &f, &n, &err);
		if (key && !err)
			err = add_call(arg, key, from, to);
	}
	return err;
}

int diff_calls__read(struct diff *d, u32 side)
{
	const struct schema *s = trace__schema(d->q[side]->trace);
	const struct schema_event **kinds = calloc(s->n_events + 1, sizeof(*kinds));
	struct calls c = { .d = d, .side = side };
	u32 n = 0;
	int err = 0;

	if (!kinds)
		return -ENOMEM;
	map__init(&c.names, sizeof(struct call_key), sizeof(struct diff_key));
	for (u32 i = 0; i < s->n_events; i++)
		if (is_compared(s, &s->events[i]) && is_in_both(d, &s->events[i], side))
			kinds[n++] = &s->events[i];
	if (n)
		err = query__read(d->q[side], kinds, on_spans, &c);
	free(kinds);
	map__free(&c.names);
	return err;
}
