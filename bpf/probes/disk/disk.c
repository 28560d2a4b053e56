// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The disk family's host side: threads that exist already when tracing begins or
 * when their process becomes a runtime, and the kernel's event of major page
 * faults, which is a perf event a CPU.
 */
#include "record/family.h"

static bool begun;
static u32 last_runtime;

static void begin(struct session *s)
{
	if (begun)
		return;
	begun = true;
	session__run_iter(s, "disk_begin");
	session__attach(s, "disk_faulted");
}

/* A process's threads exist already when it maps a runtime, and are followed from there on. */
static void on_mapped(struct session *s, struct elf *elf, const struct mapping *m)
{
	begin(s);
	if (m->pid == last_runtime || session__option(s, "disk", "all"))
		return;
	last_runtime = m->pid;
	session__run_iter(s, "disk_begin");
}

static void on_tick(struct session *s, u64 now)
{
	begin(s);
	/* the same pid may exec, or be another process by now */
	last_runtime = 0;
}

FAMILY_HOST(disk) = {
	.name = "disk",
	.is_runtime = runtime__is_one,
	.mapped = on_mapped,
	.tick = on_tick,
};
