/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading a stack costs 2 to 12 us, which is too much for each of many short intervals. So whenever the sum of such
 * intervals reaches `every` ns, the interval that completes it gets a stack: an interval is chosen with a probability
 * proportional to its length, and represents the others.
 */
#pragma once

#include "core/types.h"

/* Does an interval of this length get a stack? *left: ns until one does. */
static __always_inline bool stack__is_due(u64 *left, u64 ns, u64 every)
{
	u64 until = *left;

	if (ns < until) {
		*left = until - ns;
		return false;
	}
	*left = every - (ns - until) % every;
	return true;
}
