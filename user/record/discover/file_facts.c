// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/discover/objects.h"
#include "record/parts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void object__forget_file(struct object *o)
{
	free(o->facts);
	o->facts = NULL;
	if (o->fd >= 0)
		close(o->fd);
	o->fd = -1;
}

struct found {
	const struct object *o;
	const struct examination *x;
};

static void pass_facts(struct session *s, const struct family_host *h, u8 family, void *arg)
{
	const struct found *found = arg;

	for (u32 i = 0; i < found->x->n_families; i++) {
		if (found->x->families[i].family.id != family)
			continue;
		if (h->object_examined)
			h->object_examined(s, found->o->facts->family_facts[family]);
		if (found->x->families[i].family.hint)
			objects__hint(s->objects, family);
	}
}

void object__store_facts(struct session *s, struct object *o, const struct examination *x)
{
	struct file_facts *old = o->facts, *new = x->n_families ? malloc(sizeof(*new)) : NULL;

	if (!new)
		return;
	*new = x->facts;
	for (u32 i = 0; old && i < FAMILY_MAX; i++)
		if (o->families & FAMILY_BIT(i))
			memcpy(new->family_facts[i], old->family_facts[i], sizeof(new->family_facts[i]));
	if (old)
		new->python.reported = old->python.reported;
	free(old);
	o->facts = new;
	hosts__each(s, pass_facts, &(struct found){ o, x });
}
