/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds out by trying which programs of the families this kernel refuses, and what tracepoint programs cost. */
#pragma once

#include "core/event.h"
#include "kernel/features.h"

/* ns per hit, from the kernel's own clock around each run of a program; 0: too few hits. */
struct family_cost {
	u64 followed; /* for a thread that is recorded */
	u64 unfollowed; /* for a thread that is not recorded */
	u64 hits; /* number of hits that `followed` is measured on */
};

/* Programs of a family that a recording would have to do without on this kernel. */
struct family_refusal {
	u32 programs; /* how many */
	bool is_whole_family; /* the family records nothing */
	char text[384]; /* the first program, the reason, and what reports lack */
};

/* By family id */
struct calibration {
	char failed[512]; /* why nothing could be tried; "" if it was */
	struct family_cost costs[FAMILY_MAX];
	struct family_refusal refusals[FAMILY_MAX];
};

/*
 * Loads all programs as a recording does, and notes which the kernel refuses. Attaches those of tracepoints for 50 ms,
 * in which a child makes system calls, waits, faults, connections and a few reads of sonde's own file, and measures
 * them. Records nothing. Runs in a child, so that everything is detached when that ends. NULL: no memory.
 */
/* In calibrate_work.c: runs a child of this process that works for this long, and waits for it. */
void calibrate__work_in_child(u64 ns);
struct calibration *calibrate__new(const struct features *f);
void calibration__free(struct calibration *c);
