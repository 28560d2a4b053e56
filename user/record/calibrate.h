/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What this kernel refuses of the families' programs, and what the tracepoint programs cost: both by trying them. */
#ifndef SONDE_RECORD_CALIBRATE_H
#define SONDE_RECORD_CALIBRATE_H

#include "kernel/features.h"

/* ns a hit, by the kernel's own clock around each run of a program; 0: too few hits. */
struct family_cost {
	u64 followed; /* of a thread that is recorded */
	u64 foreign; /* of one that is not */
	u64 hits; /* what `followed` was measured on */
};

/* Programs of a family that a recording would do without here. */
struct family_refusal {
	u32 programs; /* how many */
	bool all; /* the family records nothing */
	char text[384]; /* the first, why, and what reports lack */
};

#define FAMILIES_MAX 256

/*
 * Loads all programs of the families named (A,B) as a recording does, and fills refusals[family id]. Attaches those of
 * tracepoints for 50 ms, in which a child makes system calls, waits, faults, connections and a few reads of sonde's own
 * file, and fills costs[family id]. Records nothing. In a child, so that all is gone when it ends. 0 or negative errno with a message.
 */
int calibrate__families(const struct features *f, const char *families, struct family_cost costs[FAMILIES_MAX],
			struct family_refusal refusals[FAMILIES_MAX], char *err, size_t len);

#endif
