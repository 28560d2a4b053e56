// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The disk family's host side: threads that exist already when tracing begins or
 * when their process becomes a runtime, and the kernel's event of major page
 * faults, which is a perf event a CPU.
 */
#include "record/family.h"

static bool begun;
static struct runtime_follower follower;

static void begin(struct session *s)
{
	if (begun)
		return;
	begun = true;
	session__run_iter(s, "disk_begin");
	session__attach(s, "disk_faulted");
}

static void on_mapped(struct session *s, struct elf *elf, const struct mapping *m)
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
}

FAMILY_HOST(disk) = {
	.name = "disk",
	.is_runtime = runtime__is_one,
	.mapped = on_mapped,
	.joined = on_joined,
	.tick = on_tick,
};
