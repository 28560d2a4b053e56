/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sums spans of one kind of event that a running thread is in, such as garbage collections, by process. */
#pragma once

#include "findings/finding.h"

/* Spans below a twentieth of the time explain nothing. */
#define SPAN_SHARE_MIN 20

struct span_sum {
	u64 ns, n, longest;
	u64 freed, full_collections; /* of collections: freed objects, number of collections of the oldest generation */
	u32 stack; /* of most of the time */
	char name[128]; /* of imports: the module that took longest */
};

/* The time of the process's main thread, or of the trace where its scheduling was not recorded; ns. */
u64 span_sums__wall(const struct finding_input *in, u32 pid);

/*
 * Adds a finding for each process that spent enough time in such spans; `complete` adds the rest. Of nested spans only
 * the outermost counts. pids: gets the number of each process with such spans (u32 -> u8); NULL: not needed. 0 or
 * negative errno.
 */
int span_sums__find(const struct finding_input *in, const char *event, enum finding_kind kind,
		    int (*complete)(const struct finding_input *in, const struct span_sum *s, struct finding *f),
		    struct map *pids, struct findings *out);
