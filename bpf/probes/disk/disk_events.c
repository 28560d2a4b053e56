// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the family's events mean to those who read traces. */
#include "model/meaning.h"

/*
 * A disk's work runs beside its thread (readahead, writes without a sync), so only an uninterruptible thread waits for
 * it.
 */
static const struct event_meaning events[] = {
	{ "disk_io", .cause = ACTIVITY_DISK, .rank = 9, .is_uninterruptible = true, .reason = "disk",
	  .is_beside = true },
	{ "disk_fault", .cause = ACTIVITY_FAULT, .rank = 9, .is_uninterruptible = true, .reason = "page fault (disk)" },
	{ "disk_stall", .cause = ACTIVITY_RECLAIM, .rank = 9, .reason = "memory reclaim" },
	{ "disk_cache", .is_no_wait = true },
	{ "disk_task", .is_no_wait = true },
	{},
};

FAMILY_MEANING(disk) = { "disk", events };
