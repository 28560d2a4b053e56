// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "python/task_layout.h"

#include "util/array.h"

#include <errno.h>
#include <string.h>

/* Until 3.10 a frame is an object, and all tasks are in one set. */
#define FRAME_OBJECT .set = "_all_tasks", .frame = 16, .frame_is_object = true, .arguments = 16

/* From 3.11 on the coroutine has it before its frame. */
#define FRAME_STATE .state = -5

static const struct {
	u32 version;
	struct task_layout layout;
} layouts[] = {
	/* Include/internal/pycore_pystate.h, pycore_interp.h, Include/frameobject.h, genobject.h, code.h */
	{ 0x0308,
	  { FRAME_OBJECT, .modules = 56, .name = 56, .top = STACK_TOP_POINTER, .stack_top = 72, .locals = 360,
	    .state = 116, .runs = 1 } },
	{ 0x0309,
	  { FRAME_OBJECT, .modules = 856, .name = 56, .top = STACK_TOP_POINTER, .stack_top = 72, .locals = 360,
	    .state = 116, .runs = 1 } },
	{ 0x030a,
	  { FRAME_OBJECT, .modules = 856, .name = 48, .top = STACK_TOP_DEPTH, .stack_top = 80, .locals = 352,
	    .state = 108 } },
	/* from here on Include/internal/pycore_frame.h */
	{ 0x030b,
	  { .modules = 888,
	    .set = "_all_tasks",
	    .frame = 80,
	    .stack_top = 64,
	    .locals = 72,
	    .arguments = 56,
	    FRAME_STATE } },
	{ 0x030c,
	  { .modules = 944,
	    .set = "_scheduled_tasks",
	    .frame = 72,
	    .stack_top = 64,
	    .locals = 72,
	    .arguments = 52,
	    FRAME_STATE } },
	{ 0x030d,
	  { .set = "_scheduled_tasks", .frame = 72, .stack_top = 64, .locals = 72, .arguments = 52, FRAME_STATE } },
};

/* Indices in _Py_DebugOffsets, Include/internal/pycore_runtime.h (3.13) and pycore_debug_offsets.h (later) */
#define MODULES_313 11
#define MODULES	    12

static const struct published {
	u32 version;
	u8 locals, stack_top, arguments, frame, state, node_next, node_previous;
	u8 runs; /* not published */
} published[] = {
	{ 0x030e, .locals = 35, .stack_top = 37, .arguments = 45, .frame = 85, .state = 86, .node_next = 87,
	  .node_previous = 88 },
	{ 0x030f, .locals = 43, .stack_top = 45, .arguments = 53, .frame = 101, .state = 102, .node_next = 103,
	  .node_previous = 104, .runs = 4 },
};

/* The offsets of objects here are those of builds with a GIL. */
#define OBJECT_HEAD 16

#define PUBLISHED_WORDS 105
#define OFFSET_MAX	(1 << 20)

/* The members of Py_AsyncioModuleDebugOffsets in Modules/_asynciomodule.c that are used. */
enum {
	ASYNCIO_TASK_SIZE,
	ASYNCIO_TASK_AWAITED_BY = 2,
	ASYNCIO_TASK_IS_SET = 4,
	ASYNCIO_TASK_COROUTINE,
	ASYNCIO_TASK_NODE,
	ASYNCIO_INTERPRETER_SIZE,
	ASYNCIO_INTERPRETER_TASKS,
	ASYNCIO_STATE_SIZE,
	ASYNCIO_STATE_TASKS = 12,
};

#define NODE_SIZE 16

bool task_layout__read_file(struct elf *elf, u64 offsets[ASYNCIO_OFFSETS])
{
	u64 addr, size = ASYNCIO_OFFSETS * sizeof(u64);
	const u8 *bytes;

	/* the empty text: the start of the section */
	if (elf__find_text(elf, ".AsyncioDebug", "", &addr))
		return false;
	bytes = elf__bytes(elf, addr, &size);
	if (!bytes || size < ASYNCIO_OFFSETS * sizeof(u64))
		return false;
	memcpy(offsets, bytes, size);
	return true;
}

static bool is_member(u64 offset, u64 member_size, u64 size)
{
	return offset % 8 == 0 && size <= OFFSET_MAX && offset < size && offset + member_size <= size;
}

static int read_published(const struct snapshot *l, const struct published *p, struct task_layout *out)
{
	const u64 *a = l->asyncio;
	u64 w[PUBLISHED_WORDS];

	if (!a[ASYNCIO_TASK_SIZE])
		return -ENOENT;
	/* task_fut_waiter, the word before the coroutine, is read too, behind an object's 16 bytes of head */
	if (!snapshot__read(l, l->runtime, w, sizeof(w)) || a[ASYNCIO_TASK_SIZE] > TASK_SIZE ||
	    a[ASYNCIO_TASK_COROUTINE] < 24 || !is_member(a[ASYNCIO_TASK_COROUTINE], 8, a[ASYNCIO_TASK_SIZE]) ||
	    !is_member(a[ASYNCIO_TASK_NODE], NODE_SIZE, a[ASYNCIO_TASK_SIZE]) ||
	    !is_member(a[ASYNCIO_TASK_AWAITED_BY], 8, a[ASYNCIO_TASK_SIZE]) ||
	    a[ASYNCIO_TASK_IS_SET] >= a[ASYNCIO_TASK_SIZE] ||
	    !is_member(a[ASYNCIO_INTERPRETER_TASKS], NODE_SIZE, a[ASYNCIO_INTERPRETER_SIZE]) ||
	    !is_member(a[ASYNCIO_STATE_TASKS], NODE_SIZE, a[ASYNCIO_STATE_SIZE]) ||
	    !is_member(w[p->frame], 8, OFFSET_MAX) || w[p->state] > OFFSET_MAX ||
	    !is_member(w[p->locals], 8, OFFSET_MAX) || !is_member(w[p->stack_top], 8, TASK_FRAME_BYTES) ||
	    w[p->arguments] > OFFSET_MAX || w[p->node_next] != 0 || w[p->node_previous] != 8)
		return -ENOTSUP;
	*out = (struct task_layout){
		.has_lists = true,
		.interp_tasks = a[ASYNCIO_INTERPRETER_TASKS],
		.state_tasks = a[ASYNCIO_STATE_TASKS],
		.task_node = a[ASYNCIO_TASK_NODE],
		.task_coroutine = a[ASYNCIO_TASK_COROUTINE],
		.awaited_by = a[ASYNCIO_TASK_AWAITED_BY],
		.is_set = a[ASYNCIO_TASK_IS_SET],
		.frame = w[p->frame],
		.state = (s32)(w[p->state] - w[p->frame]),
		.runs = p->runs,
		.top = STACK_TOP_POINTER,
		.stack_top = w[p->stack_top],
		.locals = w[p->locals],
		.arguments = w[p->arguments],
	};
	return 0;
}

u32 task_layout__modules(const struct snapshot *l)
{
	u32 version = l->layout.version;
	u64 offset = 0;

	if (l->layout.head != OBJECT_HEAD)
		return 0;
	for (u32 i = 0; i < ARRAY_LEN(layouts); i++)
		if (layouts[i].version == version)
			offset = layouts[i].layout.modules;
	if (version >= 0x030d)
		offset = snapshot__word(l, l->runtime + (version == 0x030d ? MODULES_313 : MODULES) * sizeof(u64));
	return offset < OFFSET_MAX ? (u32)offset : 0;
}

int task_layout__of(const struct snapshot *l, struct task_layout *out)
{
	if (l->layout.head != OBJECT_HEAD)
		return -ENOTSUP;
	for (u32 i = 0; i < ARRAY_LEN(published); i++)
		if (published[i].version == l->layout.version)
			return read_published(l, &published[i], out);
	for (u32 i = 0; i < ARRAY_LEN(layouts); i++) {
		if (layouts[i].version != l->layout.version)
			continue;
		*out = layouts[i].layout;
		return task_layout__modules(l) ? 0 : -ENOTSUP;
	}
	return -ENOTSUP;
}
