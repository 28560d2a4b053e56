// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Host code of the net family: the same processes are followed as by family sched. */
#include "record/family.h"

static const struct family_part parts[] = {
	FAMILY_WHOLE("net_state"),
	FAMILY_PART("net_sent", "bytes sent"),
	FAMILY_PART("net_received", "bytes received"),
	FAMILY_PART("net_retransmitted", "retransmits"),
	FAMILY_PART("net_open", "connections still open when the recording stopped"),
	FAMILY_PARTS_END,
};

/*
 * Writes the open connections before the probes are detached; bpf/probes/net/net.bpf.c gives the reason. A second run
 * writes the connections that were opened meanwhile.
 */
static bool has_more_records(struct session *s)
{
	session__run_iter(s, "net_open", 0);
	return false;
}

FAMILY_HOST(net) = {
	.name = "net",
	.parts = parts,
	.has_more_records = has_more_records,
	.is_runtime = runtime__is_one,
};
