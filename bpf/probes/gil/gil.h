/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of CPython's global interpreter lock. Sources: struct _gil_runtime_state in Include/internal/pycore_gil.h,
 * take_gil() and drop_gil() in Python/ceval_gil.h (3.8 to 3.11) and Python/ceval_gil.c (3.12 to 3.15). docs/gil.md
 * describes how waits are found and attributed.
 */
#pragma once

#include "core/event.h"

FAMILY(gil, 0x04, FAMILY_DEFAULT, "waits for CPython's global interpreter lock");

/*
 * A wait or a hold of at least so many ns gets a stack. Of a thread's shorter waits, and of a GIL's shorter holds, the
 * one at which their sum reaches this number gets one, and represents those before it (docs/gil.md, "Stacks").
 */
#define GIL_STACK_NS 1000000

enum gil_wait_end {
	GIL_WAIT_SIGNAL = 1, /* a thread dropped the GIL */
	GIL_WAIT_TIMEOUT = 2, /* the switch interval has passed */
};

struct gil_wait {
	struct span span;
	u64 gil UNIT(hex) DOC("address of the GIL's condition: identifies the interpreter's GIL within its process");
	u64 last_holder UNIT(hex) DOC("thread state that holds the GIL at the end, or held it last; 0: not known");
	u64 drop_time UNIT(moment) DOC("the drop that ended the wait; 0: not seen");
	enum gil_wait_end result;
	u32 dropper UNIT(task) DOC("thread (tid) whose drop ended the wait; 0: holder not seen, or ended by time-out");
	u32 holder UNIT(task) DOC("thread (tid) of last_holder; 0: not known");
	u32 locked DOC("1: the GIL was held at the end, and the thread has to wait again");
	u32 number DOC("number of this wait in its thread, from 1");
	u32 stack UNIT(stack) DOC(
		"of the waiting thread, the same for all waits of one attempt; 0: a short wait that did not get one");
	u32 holder_stack UNIT(stack)
		DOC("of the holder, when the wait timed out; 0: not readable, a short hold, or ended by a signal");
	u32 waiters DOC("threads that waited for this GIL at the start of this wait, including this one; 0: not known");
} EVENT(gil_wait, 0x0401, "a wait for the GIL; a thread that waits long makes one for each switch interval");

struct gil_drop {
	struct event event;
	u64 gil UNIT(hex) DOC("as in gil_wait");
	u32 waiter UNIT(task) DOC("thread (tid) that the drop woke");
	u32 number DOC("number of the waiter's wait");
	u32 stack UNIT(stack) DOC("of the thread that dropped it; 0: a short hold that did not get one");
	u32 waiters DOC("threads that were in a wait for it; 0: not known");
	u8 is_short DOC("1: the stack also represents the thread's short holds without a stack");
} EVENT(gil_drop, 0x0402, "a thread dropped the GIL and thereby woke a waiter");

struct gil_hold {
	struct span span;
	u64 gil UNIT(hex) DOC("as in gil_wait");
	u32 stack UNIT(stack) DOC("of the drop; 0: no thread was waiting");
	u32 waiters DOC("threads in a wait for it when it was dropped");
} EVENT(gil_hold, 0x0403, "a thread held the GIL, from its take to its drop (--gil=full)");

struct gil_switch {
	struct span span;
	u64 gil UNIT(hex) DOC("as in gil_wait");
} EVENT(gil_switch, 0x0404, "a thread that had to drop the GIL waited until another thread took it (--gil=full)");

struct gil_slice {
	struct span span;
	u64 seen DOC("waits for GILs that were recorded in the slice, in all processes");
	u64 pause UNIT(ns) DOC(
		"length of the pause before the slice; nothing was measured in the pause. If the recording ends in a pause, a slice without a length states that pause");
} EVENT(gil_slice, 0x0405,
	"a slice of time in which GILs were measured; between slices they were not, because recording all waits would slow the program down");

struct gil_owner {
	struct event event;
	u64 gil UNIT(hex) DOC("as in gil_wait");
	u64 interpreter DOC("Python's number of the interpreter; 0: the main one");
} EVENT(gil_owner, 0x0406,
	"whose GIL it is, when that was read from the memory of a process in which interpreters have a GIL each");

/* Shared by gil.c and the BPF programs; not an event. */
struct gil_control {
	u32 slice; /* number of the current slice of time: waits and holds that began in an earlier one are ignored */
	u32 watched; /* sched_waking is attached: the worker need not be woken at the first wait */
	u64 paused; /* ns: when measuring was paused; 0: it is not paused */
};

/* The addresses of a runtime in a process. Not an event: gil.c passes it to the BPF programs. */
struct gil_range {
	u64 text, text_size; /* its code */
	u64 data, data_size; /* _PyRuntime, which contains the main interpreter's GIL */
};
