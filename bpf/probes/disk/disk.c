// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Host code of the disk family: introduces threads that exist when tracing begins or when their process becomes a
 * runtime, and attaches to the kernel's software event of major page faults, a perf event per CPU.
 */

#include "record/family.h"

#define SWEEP_EVERY 5000000000ULL /* ns */

static void begin(struct session *s)
{
	session__attach(s, "disk_faulted");
}

static void on_tick(struct session *s, u64 now)
{
	session__run_iter(s, "disk_unused", 0);
}

static const struct family_part parts[] = {
	FAMILY_PART("disk_begin", "which threads are followed: major page faults and waits for memory"),
	FAMILY_PART("disk_bio_queued", "block I/O by thread and file"),
	FAMILY_PART("disk_bio_split", "I/O that the kernel splits"),
	FAMILY_PART("disk_issued", "block I/O"),
	FAMILY_PART("disk_requeued", "I/O that a device sent back"),
	FAMILY_PART("disk_completed", "block I/O"),
	FAMILY_PART("disk_bio_completed", "I/O of stacked devices"),
	FAMILY_PART("disk_open", "I/O still under way when the recording stopped"),
	FAMILY_PART("disk_fault*", "major page faults"),
	FAMILY_PART("disk_cached", "page-cache misses"),
	FAMILY_PART("disk_*reclaim*", "waits for memory (reclaim)"),
	FAMILY_PART("disk_compaction*", "waits for memory (compaction)"),
	FAMILY_PART("disk_forked", "page faults and waits of threads that begin while sonde traces"),
	FAMILY_PART("disk_exited", "sums of threads that ended"),
	FAMILY_PART("disk_unused", "page-cache misses of files beyond the first thousands"),
	FAMILY_PART("disk_tasks", "sums of the threads that run on"),
	FAMILY_PARTS_END,
};

FAMILY_HOST(disk) = {
	.name = "disk",
	.parts = parts,
	.is_runtime = runtime__is_one,
	.begin = begin,
	.follow_iterator = "disk_begin",
	.tick = on_tick,
	.tick_ns = SWEEP_EVERY,
};
