/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What only the memory of a Python process has. Children of the attacher (attach/task_reader.h) read it several times a
 * second: in any recording that walks Python stacks the names of threads, for which family proc writes an event
 * proc_name. Where a process runs an event loop, its asyncio tasks: this writes an event sample_tasks for each group of
 * tasks that wait in the same coroutines. Part of --off-cpu, because no other event shows these waits.
 */
#pragma once

#include "core/types.h"

#include <stdbool.h>

struct mapping;
struct session;
struct task_samples;

/* Is it the file of an event loop of asyncio? The path need not end with a NUL. */
bool tasks__is_event_loop(const u8 *path, u32 len);
/* The process runs a CPython. */
void tasks__runs_python(struct session *s, u32 pid);
/* A thread of the process runs an event loop. */
void tasks__found(struct session *s, u32 pid);
/*
 * A process maps a file. Stacks may lack a Python function of a loop: that of uvloop is native code, and one that never
 * wakes, as all its tasks are stuck, has no event with its stack. The latter is read in processes that `-p` names.
 */
void tasks__mapped(struct session *s, const struct mapping *m);
void tasks__tick(struct session *s, u64 now);
void task_samples__free(struct task_samples *t);
