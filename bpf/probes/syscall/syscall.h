/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of system calls, explained in docs/syscall.md. Numbers and names come from the kernel headers of the machine
 * that sonde was built on (scripts/syscalls.sh). The trace contains them as the values of enum syscall_nr, so that it
 * reads the same elsewhere.
 */
#pragma once

#include "core/event.h"
#include "core/file.h"
#include "syscall_nr.h"

FAMILY(syscall, 0x07, FAMILY_ON_REQUEST, "system calls: duration, bytes and result of each (osrt in -t)");

struct syscall {
	/* ret: a negative value is -errno; -512 to -516 is a call that a signal interrupted, see docs/syscall.md */
	struct call call;
	enum syscall_nr nr DOC("which call; from 0x8000 on 32-bit calls, from 0x4000 on calls of x32");
	u32 file DOC("event syscall_file of its descriptor, 0: has none");
	u64 arg0 UNIT(hex);
	u64 arg1 UNIT(hex);
	u64 arg2 UNIT(hex);
	u64 arg3 UNIT(hex);
	u64 arg4 UNIT(hex);
	u64 arg5 UNIT(hex);
	u64 bytes UNIT(bytes) DOC("read, written, sent or received");
	u32 sleeps DOC("how often the thread gave up its CPU to wait");
	char path[] DOC("as the caller wrote it, its first 191 bytes");
} EVENT(syscall, 0x0701, "a system call");

struct syscall_short {
	struct event event;
	u64 since UNIT(moment) DOC("start of the time in which they were made, which ends at `time`");
	u64 count DOC("calls");
	u64 total UNIT(ns) DOC("sum of their durations");
	u64 errors DOC("of these, calls that returned an error");
	enum syscall_nr nr;
} EVENT(syscall_short, 0x0703,
	"calls of one process that were shorter than --syscall-threshold, in this time; they are counted here instead of in event syscall");

struct syscall_threshold {
	struct event event;
	u64 threshold UNIT(ns) DOC("calls shorter than this are only counted");
} EVENT(syscall_threshold, 0x0704, "short calls have no events of their own in this trace");
