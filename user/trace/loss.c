// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "trace/loss.h"

#include "core/meta.h"

#define FAMILY_CORE 0x00
#define FAMILY_PROC 0x01

bool loss__is_outside(u16 family, s64 reason, u64 first, u64 last, u64 live, u64 stop)
{
	if (reason == LOSS_RETURN && stop && first > stop)
		return true;
	if (last >= live || reason == LOSS_UNPROBED)
		return false;
	/* frames of stacks and processes are recorded once, and later events refer to them */
	if (family == FAMILY_CORE || family == FAMILY_PROC)
		return false;
	return reason == LOSS_RING_FULL || reason == LOSS_DEPTH || reason == LOSS_RECURSION || reason == LOSS_RETURN;
}

bool loss__is_of_library(s64 reason)
{
	return reason == LOSS_ATTACH_GAP || reason == LOSS_UNPROBED;
}
