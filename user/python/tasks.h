/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The asyncio tasks of a running Python process, and what they await. Tasks exist only in the process's memory: while
 * all of them wait, their thread waits in the event loop. The set of all tasks is found by way of sys.modules, or from
 * 3.14 on a list of tasks in each thread state, and each task's coroutines by the awaited object on top of their
 * stacks (Modules/_asynciomodule.c, Lib/weakref.py, Objects/genobject.c). Supports CPython 3.8 to 3.15.
 */
#pragma once

#include "python/snapshot.h"

#define TASK_FRAMES_MAX 24 /* coroutines of a task */
/* Groups of tasks, the same with has_all. The tasks of further ones are counted only. */
#define TASK_GROUPS_MAX	    64
#define TASK_GROUPS_ALL_MAX 1024
#define TASK_NAME_MAX	    64
#define TASK_NO_GROUP	    0xffffffffu

enum task_state {
	TASK_WAITS,
	TASK_READY, /* it will run soon */
	TASK_ENDED,
	TASK_RUNS, /* its coroutines are in the stack of a thread */
};

struct task_stack {
	struct snapshot_frame frames[TASK_FRAMES_MAX]; /* innermost first */
	u32 n;
};

struct task_peer {
	u64 high, low; /* the address as IPv6, of which IPv4 is ::ffff:a.b.c.d */
	u16 port; /* 0: there is no peer */
};

/* Tasks of one process that are in the same state and in equal stacks. */
struct task_group {
	u32 tasks;
	enum task_state state;
	u32 first; /* a task of it, while tasks are read */
	u32 begun; /* of them, those that did not wait in the same state at the reading before */
	u64 object; /* whose method the innermost coroutine runs, such as an asyncio.Lock; of one of the tasks */
	bool serves; /* its outermost coroutine was called with a stream, as for each client of a server */
	struct task_stack stack;
	struct task_stack holder; /* of a task that is inside of `async with` of this object; n 0: none was found */
	char holder_name[TASK_NAME_MAX]; /* with has_all */
	/* of the last one of the tasks that the holder waits for, one for the other; n 0: it waits for none */
	struct task_stack last;
	struct task_peer peer; /* whose connection the last one waits for; without a holder, one of the group's tasks */
};

struct named_task {
	char name[TASK_NAME_MAX];
	u32 group; /* its index, or TASK_NO_GROUP */
};

/* A task awaits another one. */
struct task_await {
	u32 waiter, awaited; /* indices of tasks */
};

struct tasks {
	/* set before the first call: also the tasks that do not wait, their names, and which ones await which others */
	bool has_all;
	struct task_group *groups;
	u32 n;
	struct named_task *list; /* with has_all: by name */
	u32 n_list;
	struct task_await *awaits; /* with has_all: by waiter */
	u32 n_awaits;
	u32 all; /* tasks that were read and have not ended */
	u32 waiting; /* of them, those that wait for something */
	bool more; /* there are more tasks, or groups of them, than were read */
	u64 set; /* until 3.13: address of the set of all tasks, found by the first call */
	struct map waits; /* of the last reading: the task's address -> a hash of its state */
};

/*
 * Reads the tasks of the main interpreter. Returns 0; -ENOENT: it has no asyncio, or no task yet; -ESRCH: the process
 * has ended or executes another program; -ENOTSUP: TASKS_UNKNOWN; -ENOMEM. The rest of *t must be zeroed before.
 */
int snapshot__tasks(struct snapshot *l, struct tasks *t);
#define TASKS_UNKNOWN                                                                                      \
	"this build of CPython has them where sonde does not expect them; if it is no free-threaded one, " \
	"report `python -VV` to sonde's developers"
void tasks__free(struct tasks *t);
