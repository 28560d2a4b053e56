/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One reading of the asyncio tasks of a process: what tasks.c, task_awaits.c and task_peer.c share. */
#pragma once

#include "python/task_layout.h"
#include "python/tasks.h"

/* The first callback of a future or task, until 3.13, and the list of further ones */
#define FUTURE_CALLBACK	 24
#define FUTURE_CALLBACKS 40
/* From 3.14 on references in frames have a tag in their lowest bits. */
#define TASK_TAG_MASK 7ULL

struct raw_task {
	struct {
		u64 code, locals;
		u64 name; /* the coroutine's; 0: its code object has it */
		s64 offset;
		u32 words; /* locals and stack */
	} frames[TASK_FRAMES_MAX]; /* outermost first */
	u32 n;
	u64 task, waits; /* addresses of the task and of the future that it waits for */
	/*
	 * a hash of that address and of what is on its coroutines' stacks: the next future often gets the same address
	 */
	u64 hash;
	enum task_state state;
	char name[TASK_NAME_MAX]; /* with has_all */
	u64 awaited_by; /* from 3.14 on: a task or a set of them; 0: none */
	bool is_set;
	u64 callbacks[2]; /* until 3.13: the first one, and the list of further ones */
};

struct task_reading {
	struct task_layout layout;
	u32 coroutine; /* the word of a task that is its coroutine; 0: not known yet */
	bool has_all; /* also tasks that do not wait */
	struct raw_task *list;
	u32 n, all;
	u32 nodes; /* of lists, that were read */
	u32 reads; /* of tasks */
	u32 examined; /* words of stacks */
	bool more; /* lists were read in part */
	struct task_await *awaits;
	u32 n_awaits;
	bool has_awaits; /* they were read */
};

/* In task_awaits.c: finds out which tasks await which others, once per reading. Returns 0 or -ENOMEM. */
int task_reading__awaits(struct snapshot *l, struct task_reading *r);
/* In task_peer.c: the peer of the connection that the task waits for; its port is 0 if there is none. */
struct task_peer task_reading__peer(struct snapshot *l, const struct raw_task *t, const struct task_stack *stack);
