// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Families that measure in slices of time: stores the sites of their probes, so that these can be detached and
 * attached again.
 */
#include "record/internal.h"

#include "util/array.h"

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

u32 pause__object(const struct schema_family *family, u32 object)
{
	const struct family_host *h = family_host__find(family->name);

	return h && h->slices ? LINK_OBJECT(family->id, object) : object;
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
	int ret = 0, err;

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
