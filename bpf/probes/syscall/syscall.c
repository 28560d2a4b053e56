// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Host code of the syscall family: runs the iterators that follow threads which exist already, and that write the sums
 * of short calls.
 */
#include "syscall.h"

#include "record/family.h"

#define SECOND_NS 1000000000ULL

static void begin(struct session *s)
{
	u64 threshold = session__number(s, "syscall", "threshold");
	struct syscall_threshold r = {
		.event = { .time = session__now(s), .id = ID_syscall_threshold },
		.threshold = threshold,
	};

	session__run_iter(s, "syscall_short_calls", 0);
	if (threshold)
		session__emit(s, &r, sizeof(r));
}

static void on_tick(struct session *s, u64 now)
{
	if (session__number(s, "syscall", "threshold"))
		session__run_iter(s, "syscall_short_calls", 0);
}

static const struct family_part parts[] = {
	FAMILY_WHOLE("syscall_enter"),
	FAMILY_WHOLE("syscall_exit"),
	FAMILY_WHOLE("syscall_begin"),
	FAMILY_PART("syscall_forked", "calls of threads that begin while sonde traces"),
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
	.begin = begin,
	.follow_iterator = "syscall_begin",
	.baseline = "syscall_short_calls",
	.names_files = true,
	.tick = on_tick,
	.tick_ns = SECOND_NS,
};
