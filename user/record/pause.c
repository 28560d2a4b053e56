// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Families that measure in slices of time: their probes go off and on again, so what they sit on is kept. */
#include "record/internal.h"

#include "util/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One link's sites; offsets and cookies are one block. */
struct kept {
	const struct program *program;
	enum attach_method method;
	struct link_sites sites;
};

u32 pause__object(const struct schema_family *family, u32 object)
{
	const struct family_host *h = family_host__find(family->name);

	return h && h->slices ? LINK_OBJECT(family->id, object) : object;
}

int pause__keep(struct session *s, const struct program *p, enum attach_method method, const struct link_sites *sites)
{
	struct kept k = { .program = p, .method = method, .sites = *sites };
	u64 *block;

	if (!sites->n || sites->object == (sites->object & LINK_OBJECT_MASK))
		return 0;
	if (!array__room(s->kept, s->n_kept))
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
	s->kept[s->n_kept++] = k;
	return 0;
}

static void forget(struct kept *k)
{
	close(k->sites.fd);
	free((void *)k->sites.offsets);
}

void pause__forget(struct session *s, u32 object)
{
	u32 left = 0;

	for (u32 i = 0; i < s->n_kept; i++) {
		if (!object || (s->kept[i].sites.object & LINK_OBJECT_MASK) == object)
			forget(&s->kept[i]);
		else
			s->kept[left++] = s->kept[i];
	}
	s->n_kept = left;
	if (left)
		return;
	free(s->kept);
	s->kept = NULL;
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
	int ret = 0, err;

	for (u32 i = 0; i < s->n_kept; i++) {
		const struct kept *k = &s->kept[i];

		if (k->program->family != f)
			continue;
		err = session__link(s, k->program, k->method, &k->sites, NULL);
		if (!ret)
			ret = err;
	}
	return ret;
}
