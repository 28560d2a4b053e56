/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asyncio tasks in a recording: several times a second, children of the attacher (attach/task_reader.h) read the tasks
 * of the processes that run an event loop, and this writes an event sample_tasks for each group of tasks that wait in
 * the same coroutines. Part of --off-cpu, because no other event shows these waits.
 */
#pragma once

#include "core/types.h"

#include <stdbool.h>

struct mapping;
struct session;
struct task_samples;

/* Is it the file of an event loop of asyncio? The path need not end with a NUL. */
bool tasks__is_event_loop(const u8 *path, u32 len);
/* A thread of the process runs an event loop. */
void tasks__found(struct session *s, u32 pid);
/*
 * A process maps a file. Stacks may lack a Python function of a loop: that of uvloop is native code, and one that never
 * wakes, as all its tasks are stuck, has no event with its stack. The latter is read in processes that `-p` names.
 */
void tasks__mapped(struct session *s, const struct mapping *m);
void tasks__tick(struct session *s, u64 now);
void task_samples__free(struct task_samples *t);
