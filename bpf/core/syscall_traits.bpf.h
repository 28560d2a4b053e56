/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers of system calls as events have them, and what their arguments are (scripts/syscalls.sh, from calls.txt).
 * Include it after syscall_nr.h.
 */
#ifndef SONDE_SYSCALL_TRAITS_BPF_H
#define SONDE_SYSCALL_TRAITS_BPF_H

#include "core/file.h"
#include "core/sonde.bpf.h"

#define ARGS(traits) ((traits)&7)
#define HAS_FD	     8 /* the first argument, looked up at the entry */
#define HAS_FDX	     16 /* the first, at the return */
#define HAS_FD5	     32 /* the fifth, at the entry */
#define NEW_FD	     64 /* the return value */
#define HAS_PATH     128 /* the first argument */
#define HAS_PATH1    256 /* the second */
#define HAS_BYTES    512 /* the return value */

#define TABLE 512

static const u16 traits_native[TABLE] = { SYSCALL_TRAITS };
static const u16 traits_32[TABLE] = { SYSCALL_TRAITS_32 };

#define X32_BIT 0x40000000

static __always_inline u32 encode(struct task_struct *task, u32 id)
{
	if (task__in_32bit_call(task))
		return SYSCALL_32 | (id & (SYSCALL_32 - 1));
	return id & X32_BIT ? SYSCALL_X32 | (id & (SYSCALL_X32 - 1)) : id;
}

static __always_inline u16 traits_of(u32 nr)
{
	bool compat = nr & SYSCALL_32;

	nr &= SYSCALL_X32 - 1;
	if (nr >= TABLE)
		return 6;
	return compat ? traits_32[nr & (TABLE - 1)] : traits_native[nr & (TABLE - 1)];
}

#endif
