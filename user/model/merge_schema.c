// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The schema of a merged trace: all kinds of event, enums and families of the inputs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/merge_private.h"

/* Adds a kind of event; of a kind that has gained fields over time, the larger version is used. */
static int add_event(struct merge *m, const struct schema_event *e, const char *file)
{
	for (u32 i = 0; i < m->schema.n_events; i++) {
		struct schema_event *known = &m->schema.events[i];

		if (known->id != e->id)
			continue;
		if (strcmp(known->name, e->name))
			return merge__fail(m, -EINVAL, file,
					   "an id is that of another kind of event than in the other traces");
		if (e->n > known->n)
			*known = *e;
		return 0;
	}
	m->schema.events[m->schema.n_events++] = *e;
	return 0;
}

static void add_enum(struct merge *m, const struct schema_enum *e)
{
	for (u32 i = 0; i < m->schema.n_enums; i++) {
		if (strcmp(m->schema.enums[i].name, e->name))
			continue;
		if (e->n > m->schema.enums[i].n)
			m->schema.enums[i] = *e;
		return;
	}
	m->schema.enums[m->schema.n_enums++] = *e;
}

static void add_family(struct merge *m, const struct schema_family *f)
{
	for (u32 i = 0; i < m->schema.n_families; i++)
		if (m->schema.families[i].id == f->id)
			return;
	m->schema.families[m->schema.n_families++] = *f;
}

static int by_id(const void *a, const void *b)
{
	return ((const struct schema_event *)a)->id - ((const struct schema_event *)b)->id;
}

int merge__join_schemas(struct merge *m)
{
	u32 events = 0, enums = 0, families = 0;
	int err = 0;

	for (u32 i = 0; i < m->n; i++) {
		const struct schema *s = trace__schema(m->inputs[i].trace);

		events += s->n_events;
		enums += s->n_enums;
		families += s->n_families;
	}
	m->schema.events = calloc(events + 1, sizeof(*m->schema.events));
	m->schema.enums = calloc(enums + 1, sizeof(*m->schema.enums));
	m->schema.families = calloc(families + 1, sizeof(*m->schema.families));
	if (!m->schema.events || !m->schema.enums || !m->schema.families)
		return -ENOMEM;
	for (u32 i = 0; !err && i < m->n; i++) {
		const struct schema *s = trace__schema(m->inputs[i].trace);

		for (u32 j = 0; !err && j < s->n_events; j++)
			err = add_event(m, &s->events[j], m->inputs[i].file);
		for (u32 j = 0; j < s->n_enums; j++)
			add_enum(m, &s->enums[j]);
		for (u32 j = 0; j < s->n_families; j++)
			add_family(m, &s->families[j]);
	}
	qsort(m->schema.events, m->schema.n_events, sizeof(*m->schema.events), by_id);
	return err;
}
