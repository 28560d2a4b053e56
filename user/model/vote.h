/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the item with most of the time by majority vote: exact if one item has more than half of it. */
#pragma once

#include "core/types.h"

struct vote {
	u32 id;
	double lead;
};

static inline void vote(struct vote *v, u32 id, double ns)
{
	if (v->id == id) {
		v->lead += ns;
	} else if (ns > v->lead) {
		v->id = id;
		v->lead = ns - v->lead;
	} else {
		v->lead -= ns;
	}
}
