/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds out by trying which programs of the families this kernel refuses. */
#pragma once

#include "core/event.h"
#include "kernel/features.h"

/* Programs of a family that a recording would have to do without on this kernel. */
struct family_refusal {
	u32 programs; /* how many */
	bool is_whole_family; /* the family records nothing */
	char text[384]; /* the first program, the reason, and what reports lack */
};

struct families_tried {
	char failed[512]; /* why nothing could be tried; "" if it was */
	struct family_refusal refusals[FAMILY_MAX]; /* by family id */
};

/*
 * Loads all programs as a recording does and attaches those of tracepoints, for no process. Runs in a child, so that
 * everything is detached when that ends. NULL: no memory.
 */
struct families_tried *families__try(const struct features *f);
void families_tried__free(struct families_tried *t);
