// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The disk family's host side: threads that exist already when tracing begins or
 * when their process becomes a runtime, and the kernel's event of major page
 * faults, which is a perf event a CPU.
 */
#include <errno.h>
#include <string.h>

#include "record/family.h"

#define SWEEP_EVERY 5000000000ULL /* ns */

static bool begun;
static struct runtime_follower follower;
static u64 next_sweep;

static void begin(struct session *s)
{
	if (begun)
		return;
	begun = true;
	session__run_iter(s, "disk_begin");
	session__attach(s, "disk_faulted");
}

static void on_mapped(struct session *s, struct file_facts *file, const void *own, const struct mapping *m)
{
	begin(s);
	if (!session__option(s, "disk", "all"))
		runtime__mapped(&follower, s, m->pid, "disk_begin");
}

/* Its threads are followed from here on: with a filter no runtime of theirs is waited for. */
static void on_joined(struct session *s, u32 pid)
{
	session__run_iter_of(s, "disk_begin", pid);
}

static void on_tick(struct session *s, u64 now)
{
	begin(s);
	runtime__tick(&follower);
	if (now < next_sweep)
		return;
	next_sweep = now + SWEEP_EVERY;
	session__run_iter(s, "disk_rested");
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
	FAMILY_PART("disk_forked", "page faults and waits of threads that begin meanwhile"),
	FAMILY_PART("disk_exited", "sums of threads that ended"),
	FAMILY_PART("disk_rested", "page-cache misses of files beyond the first thousands"),
	FAMILY_PART("disk_tasks", "sums of the threads that run on"),
	FAMILY_PARTS_END,
};

FAMILY_HOST(disk) = {
	.name = "disk",
	.parts = parts,
	.is_runtime = runtime__is_one,
	.mapped = on_mapped,
	.joined = on_joined,
	.tick = on_tick,
};
