// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sites become links in portions, with the rings drained in between. */
#include "record/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* In a pause a target's page faults get through, and the rings don't fill up. */
static void pause_between(struct session *s, u32 next)
{
	drain__rings(s);
	usleep(LINK_PAUSE_US);
	s->unpaused = next;
}

int session__link(struct session *s, const struct program *p, enum attach_method method, const struct link_sites *sites,
		  u32 *attached)
{
	struct link_sites part = *sites;
	int ret = 0, err;

	for (u32 done = 0; done < sites->n; done += part.n) {
		part.offsets = sites->offsets + done;
		part.cookies = sites->cookies + done;
		part.counters = sites->counters ? sites->counters + done : NULL;
		part.n = sites->n - done < LINK_SITES ? sites->n - done : LINK_SITES;
		s->unpaused += part.n;
		if (s->unpaused > LINK_SITES)
			pause_between(s, part.n);
		err = attacher__sites(s->attacher, p, method, &part);
		if (!err && attached)
			*attached += part.n;
		if (!ret)
			ret = err;
	}
	drain__rings(s);
	return ret;
}

int session__link_process(struct session *s, const char *name, const struct mapping *m, const u64 *offsets,
			  const u64 *counters, u32 n, u32 object)
{
	const struct program *p = probes__program(&s->embedded.probes, name);
	u16 number = p && p->enabled ? probes__number(&s->embedded.probes, p, p->section.rest) : 0;
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
	err = sites.fd < 0 ? sites.fd : attacher__sites(s->attacher, p, s->entry_method, &sites);
	if (sites.fd >= 0)
		close(sites.fd);
	free(cookies);
	return err;
}

void session__unlink_process(struct session *s, u32 object)
{
	attacher__drop(s->attacher, object);
}

/* Takes a tenth of a second, with perf events many: meanwhile the rings fill up. */
void session__unlink(struct session *s)
{
	while (s->attacher && attacher__detach_sites(s->attacher) > 0) {
		drain__rings(s);
		trace_writer__tick(s->writer, session__now(s));
	}
}
