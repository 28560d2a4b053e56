// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Attaches sites in portions, and drains the rings in between. */
#include "record/parts.h"
#include "site/verify_site.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* At the start records are only copied: handling them takes time, and the libraries are to be probed soon. */
static void read_rings(struct session *s)
{
	if (s->time.started)
		drain__rings(s);
	else
		drain__copy(s);
}

/*
 * Waits between two portions, and drains the rings: a page fault of a target waits while the kernel inserts
 * breakpoints, and the rings would fill up.
 */
static void wait_between(struct session *s, u32 next)
{
	read_rings(s);
	usleep(LINK_WAIT_US);
	s->site_links.since_wait = next;
}

/* Up to LINK_SITES sites that the attacher confirmed. */
struct confirmed {
	u64 offsets[LINK_SITES], cookies[LINK_SITES], counters[LINK_SITES];
};

/* Removes the sites that the attacher refused, and stores the first one for the message about them. */
static void leave_out(struct session *s, struct confirmed *c, struct link_sites *part, const u8 *verdicts)
{
	u32 keep = 0;

	for (u32 i = 0; i < part->n; i++) {
		if (verdicts[i] != SITE_OK) {
			if (!s->site_links.refused.n++) {
				s->site_links.refused.offset = part->offsets[i];
				s->site_links.refused.verdict = verdicts[i];
			}
			continue;
		}
		c->offsets[keep] = part->offsets[i];
		c->cookies[keep] = part->cookies[i];
		c->counters[keep++] = part->counters ? part->counters[i] : 0;
	}
	part->offsets = c->offsets;
	part->cookies = c->cookies;
	part->counters = part->counters ? c->counters : NULL;
	part->n = keep;
}

/* Attaches one portion. Sets *attached to the number of its sites that are probed now. */
static int link_part(struct session *s, const struct program *p, enum attach_method method, struct link_sites part,
		     u32 *attached)
{
	struct confirmed c;
	u8 verdicts[LINK_SITES];
	int err = attacher__sites(s->attacher, p, method, &part, verdicts);

	if (err == -EBADMSG) {
		leave_out(s, &c, &part, verdicts);
		err = attacher__sites(s->attacher, p, method, &part, NULL);
	}
	*attached = err ? 0 : part.n;
	return err;
}

int site_links__add(struct session *s, const struct program *p, enum attach_method method,
		    const struct link_sites *sites, u32 *attached)
{
	struct link_sites part = *sites;
	u32 done_now;
	int ret = 0, err;

	for (u32 done = 0; done < sites->n; done += part.n) {
		part.offsets = sites->offsets + done;
		part.cookies = sites->cookies + done;
		part.counters = sites->counters ? sites->counters + done : NULL;
		part.n = sites->n - done < LINK_SITES ? sites->n - done : LINK_SITES;
		s->site_links.since_wait += part.n;
		if (s->site_links.since_wait > LINK_SITES)
			wait_between(s, part.n);
		err = link_part(s, p, method, part, &done_now);
		if (attached)
			*attached += done_now;
		ret = ret ?: err;
	}
	read_rings(s);
	return ret;
}

int session__link_process(struct session *s, const char *name, const struct mapping *m, const u64 *offsets,
			  const u64 *counters, u32 n, u32 object)
{
	const struct program *p = probes__program(&s->embedded.probes, name);
	u16 number = p && p->enabled ? probes__add(&s->embedded.probes, p, p->section.rest, 0) : 0;
	struct link_sites sites = {
		.offsets = offsets,
		.counters = counters,
		.n = n,
		.pid = m->pid,
		.object = object,
	};
	u64 *cookies;
	int err;

	if (!number)
		return -ENOENT;
	cookies = calloc(n, sizeof(*cookies));
	if (!cookies)
		return -ENOMEM;
	for (u32 i = 0; i < n; i++)
		cookies[i] = number;
	sites.cookies = cookies;
	sites.fd = session__open_mapped(s, m);
	err = sites.fd < 0 ? sites.fd : attacher__sites(s->attacher, p, s->load.method.entry, &sites, NULL);
	if (sites.fd >= 0)
		close(sites.fd);
	free(cookies);
	return err;
}

void session__unlink_process(struct session *s, u32 object)
{
	attacher__drop(s->attacher, object);
}

/* Detaching takes a tenth of a second, and seconds if links are perf events, so the rings are drained meanwhile. */
void site_links__detach(struct session *s)
{
	while (s->attacher && attacher__detach_sites(s->attacher) > 0) {
		drain__rings(s);
		trace_writer__tick(s->writer, session__now(s));
	}
}
