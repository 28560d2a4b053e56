// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The syscall family's host side: threads that exist already, and the calls that were only counted. */
#include "syscall.h"

#include "record/family.h"

#define SECOND_NS 1000000000ULL

static bool begun;
static struct runtime_follower follower;
static u64 next_shorts;

static void begin(struct session *s)
{
	u64 threshold = session__number(s, "syscall", "threshold");
	struct syscall_threshold r = {
		.event = { .time = session__now(s), .id = ID_syscall_threshold },
		.threshold = threshold,
	};

	if (begun)
		return;
	begun = true;
	session__run_iter(s, "syscall_short_calls");
	session__run_iter(s, "syscall_begin");
	if (threshold)
		session__emit(s, &r, sizeof(r));
}

static void on_mapped(struct session *s, struct file_facts *file, const void *own, const struct mapping *m)
{
	begin(s);
	runtime__mapped(&follower, s, m->pid, "syscall_begin");
}

/* Its threads are followed from here on: with a filter no runtime of theirs is waited for. */
static void on_joined(struct session *s, u32 pid)
{
	session__run_iter_of(s, "syscall_begin", pid);
}

static void on_tick(struct session *s, u64 now)
{
	begin(s);
	runtime__tick(&follower);
	if (now < next_shorts || !session__number(s, "syscall", "threshold"))
		return;
	next_shorts = now + SECOND_NS;
	session__run_iter(s, "syscall_short_calls");
}

static const struct family_part parts[] = {
	FAMILY_WHOLE("syscall_enter"),
	FAMILY_WHOLE("syscall_exit"),
	FAMILY_WHOLE("syscall_begin"),
	FAMILY_PART("syscall_forked", "calls of threads that begin meanwhile"),
	FAMILY_PART("syscall_thread_exit", "calls that a thread never returned from"),
	FAMILY_PART("syscall_execed", "the call by which a program was run"),
	FAMILY_PART("syscall_short_calls", "sums of the short calls"),
	FAMILY_PART("syscall_open_calls", "calls still open when the recording stopped"),
	FAMILY_PARTS_END,
};

FAMILY_HOST(syscall) = {
	.name = "syscall",
	.parts = parts,
	.is_runtime = runtime__is_one,
	.mapped = on_mapped,
	.joined = on_joined,
	.tick = on_tick,
};
