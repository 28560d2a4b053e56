/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where CPython has its asyncio tasks and the frames of coroutines. Those of 3.8 to 3.13 are tables by version, like
 * those of python/layouts.h. From 3.14 on CPython publishes them: _Py_DebugOffsets, and _AsyncioDebug in a section of
 * the file that contains the module _asyncio.
 */
#pragma once

#include "elf/elf.h"
#include "python/snapshot.h"

/* The bytes of a _asyncio.Task and of a frame that are read. */
#define TASK_SIZE	 256
#define TASK_FRAME_BYTES 128

/* How a frame says how many words its locals and its stack have. */
enum stack_top {
	STACK_TOP_COUNT, /* their number, an int (3.11 to 3.13) */
	STACK_TOP_POINTER, /* the address of their end (3.8, 3.9, 3.14 and later) */
	STACK_TOP_DEPTH, /* the number of words of the stack, whose address is f_valuestack (3.10) */
};

/* Offsets in bytes. */
struct task_layout {
	u32 modules; /* PyInterpreterState: sys.modules; 0: use task_layout__modules() */
	bool has_lists; /* tasks are in lists; false: in a set of module asyncio.tasks */
	const char *set; /* the name of that set */
	u32 interp_tasks, state_tasks; /* struct llist_node in PyInterpreterState and in PyThreadState */
	u32 task_node; /* struct llist_node in a task */
	u32 task_coroutine; /* 0: is to be found */
	u32 awaited_by, is_set; /* with has_lists: in a task, who awaits it, and whether that is a set */
	u32 frame; /* the coroutine's frame */
	bool frame_is_object; /* the coroutine has only a pointer to its frame */
	s32 state; /* from the frame on: a byte, larger than the next one when it has ended */
	u8 runs; /* the state of a frame that runs */
	u32 name; /* the coroutine's qualified name; 0: its code object has it */
	enum stack_top top;
	u32 stack_top, locals; /* in the frame */
	u32 arguments; /* PyCodeObject.co_argcount */
};

/*
 * Fills the layout for a process. Returns 0, or -ENOTSUP: the version is not known, or what it publishes is not
 * plausible. -ENOENT: no file of the process has _AsyncioDebug, so it has not imported asyncio.
 */
int task_layout__of(const struct snapshot *l, struct task_layout *out);
/* The offset of sys.modules in PyInterpreterState; 0: not known. */
u32 task_layout__modules(const struct snapshot *l);
/* Reads _AsyncioDebug of a mapped file, if it has it. */
bool task_layout__read_file(struct elf *elf, u64 offsets[ASYNCIO_OFFSETS]);
