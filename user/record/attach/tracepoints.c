// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Attaches the programs of tracepoints at the start, and detaches them at the end. */
#include "record/parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * Programs on one tracepoint run in the order of their links. The core's programs update the set of processes, which
 * the families' programs read: a process that starts must be in the set before the families' programs run, and one
 * that ends must be in it until they have run. A process's fork is recorded before all other events of the process,
 * because a reader attributes earlier events to the previous process with the same pid. Families' programs at the
 * entry of a system call run in the reverse order of those at its exit, so that what two families record of one call
 * nests.
 */
enum { ORDER_FIRST, ORDER_FORK, ORDER_FAMILIES, ORDER_ENTRIES, ORDER_LAST };

static int order_of(const struct program *p)
{
	if (!strcmp(p->section.rest, "sched_process_fork") && !strcmp(p->family->name, "proc"))
		return ORDER_FORK;
	if (p->family->id)
		return strcmp(p->section.rest, "sys_enter") ? ORDER_FAMILIES : ORDER_ENTRIES;
	return strcmp(p->section.rest, "sched_process_exit") ? ORDER_FIRST : ORDER_LAST;
}

int tracepoints__attach(struct session *s, char *err, size_t len)
{
	u32 n = s->embedded.probes.n_programs;
	int ret = 0;

	for (int order = ORDER_FIRST; order <= ORDER_LAST; order++)
		for (u32 i = 0; i < n && !ret; i++) {
			struct program *p = &s->embedded.probes.programs[order == ORDER_ENTRIES ? n - 1 - i : i];

			if (!p->enabled || p->section.kind != SECTION_TRACEPOINT || p->section.on_demand ||
			    order_of(p) != order)
				continue;
			ret = attacher__attach(s->attacher, p);
			if (ret == -EPIPE)
				snprintf(err, len, "the process that attaches has ended");
			else if (ret)
				ret = refused__unattached(s, p, ret, err, len);
		}
	return ret;
}

void tracepoints__detach(struct session *s, bool alone)
{
	PROGRAMS_EACH(p, &s->embedded.probes)
		if (p->enabled && p->section.kind == SECTION_TRACEPOINT &&
		    (!alone || (p->family->id && s->load.tracepoints_alone[p->family->id])))
			attacher__detach(s->attacher, p);
}
