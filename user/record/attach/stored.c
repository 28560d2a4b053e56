// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Families whose probes are detached and attached again (family_host.detaches): stores the sites of their probes. Some
 * measure in slices of time, some are detached while the recording is suspended.
 */
#include "record/parts.h"
#include "util/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The sites of one link; offsets and cookies are one block. */
struct stored_link {
	const struct program *program;
	enum attach_method method;
	struct link_sites sites;
};

/* Can the probes of this program be detached and attached again? */
static bool is_detachable(const struct program *p)
{
	const struct family_host *h = family_host__find(p->family->name);

	return h && (h->detaches || h->toggles) && !(h->stays_attached && h->stays_attached(p->name));
}

u32 site_links__object(const struct program *p, u32 object)
{
	return is_detachable(p) ? LINK_OBJECT(p->family->id, object) : object;
}

int site_links__store(struct site_links *l, const struct program *p, enum attach_method method,
		      const struct link_sites *sites)
{
	struct stored_link k = { .program = p, .method = method, .sites = *sites };
	u64 *block;

	if (!sites->n || sites->object == (sites->object & LINK_OBJECT_MASK))
		return 0;
	if (!array__room(l->stored, l->n_stored))
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
	l->stored[l->n_stored++] = k;
	return 0;
}

void site_links__forget(struct site_links *l, u32 object)
{
	u32 left = 0;

	for (u32 i = 0; i < l->n_stored; i++) {
		if (object && (l->stored[i].sites.object & LINK_OBJECT_MASK) != object) {
			l->stored[left++] = l->stored[i];
			continue;
		}
		close(l->stored[i].sites.fd);
		free((void *)l->stored[i].sites.offsets);
	}
	l->n_stored = left;
}

int session__detach_family(struct session *s, const char *family)
{
	return attacher__drop(s->attacher, LINK_OBJECT(schema__family(s->embedded.schema, family)->id, 0));
}

int session__attach_family(struct session *s, const char *family)
{
	const struct schema_family *f = schema__family(s->embedded.schema, family);
	int ret, err;

	/* of objects that were mapped meanwhile the probes may be attached already */
	ret = session__detach_family(s, family);
	for (u32 i = 0; i < s->site_links.n_stored; i++) {
		const struct stored_link *k = &s->site_links.stored[i];

		if (k->program->family != f)
			continue;
		err = site_links__add(s, k->program, k->method, &k->sites, NULL);
		ret = ret ?: err;
	}
	return ret;
}

bool session__detaches_slowly(const struct session *s)
{
	return s->load.method.entry == ATTACH_PERF;
}

/* Reports of the trace state the time without the family, as they do other warnings. */
static void note_off(struct session *s, const struct schema_family *f)
{
	u64 now = session__now(s), start = s->time.head;

	session__warn(s, "family %s was off from %.3f to %.3f s, at a request of `sonde control`", f->name,
		      (double)(s->site_links.off_since[f->id] - start) / 1e9, (double)(now - start) / 1e9);
}

int site_links__toggle(struct session *s, const struct schema_family *f, bool on)
{
	int err;

	if (on == !(s->site_links.off & FAMILY_BIT(f->id)))
		return 0;
	s->site_links.off ^= FAMILY_BIT(f->id);
	if (on) {
		err = session__attach_family(s, f->name);
		note_off(s, f);
		return err;
	}
	err = session__detach_family(s, f->name);
	s->site_links.off_since[f->id] = session__now(s);
	return err;
}

void site_links__note_off(struct session *s)
{
	for (u32 i = 0; i < s->embedded.schema->n_families; i++)
		if (s->site_links.off & FAMILY_BIT(s->embedded.schema->families[i].id))
			note_off(s, &s->embedded.schema->families[i]);
}

bool site_links__are_detached(const struct session *s, const struct program *p)
{
	const struct family_host *h = family_host__find(p->family->name);

	if (s->site_links.off & FAMILY_BIT(p->family->id) && is_detachable(p))
		return true;
	return suspension__is_on(&s->suspension) && h && h->set_suspended && is_detachable(p);
}
