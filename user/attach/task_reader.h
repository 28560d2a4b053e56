/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A child of the attacher, sonde-tasks, that reads the asyncio tasks (python/tasks.h), the names of threads
 * (python/names.h), what is run (python/program.h) and whose the GILs are (python/snapshot.h) of one process. It opens
 * the process's memory and the files that the process maps, gives up all privileges, finds the interpreter in these
 * files, closes them, and reads. The worker has only its socket: it gets names and lines, and can neither read that
 * memory nor choose an address. Each message to the child requests one reading, which it answers with several messages,
 * the last of which is TASKS_END. It reads tasks after a random delay: readings at a regular interval would show a
 * regular program always at the same moment of its cycle.
 */
#pragma once

#include "python/program.h"
#include "python/tasks.h"

#include <stdbool.h>
#include <sys/types.h>

#define TASK_READERS_MAX   64
#define TASK_FUNCTIONS_MAX 4096 /* functions of one process; its child ends at a further one */
#define THREAD_NAMES_MAX   4096 /* in the answer to one request */

/* A request is a byte of these bits. */
enum task_reading {
	READ_TASKS = 1,
	READ_NAMES = 2, /* and what it runs, and its GILs */
};

enum tasks_message_kind {
	TASKS_FUNCTION, /* a function that the next groups name for the first time */
	TASKS_GROUP, /* tasks that wait in equal stacks */
	TASKS_NAME, /* a thread has another name than at the reading before */
	TASKS_GIL, /* a GIL is not that of the interpreter of the reading before */
	TASKS_PROGRAM, /* what the process runs is known, or is another script than at the reading before */
	TASKS_END, /* the reading is complete */
};

struct tasks_function {
	u32 number; /* from 1 on, without gaps */
	u32 line;
	char name[128], file[256];
};

struct tasks_stack {
	u32 n;
	struct {
		u32 function, line;
	} frames[TASK_FRAMES_MAX]; /* innermost first */
};

struct tasks_group {
	u32 tasks, begun;
	u64 object;
	struct task_peer peer;
	u32 serves, unused;
	struct tasks_stack stack, holder, last;
};

struct tasks_name {
	u32 own_tid; /* in the process's own pid namespace */
	char text[128];
};

struct tasks_gil {
	u64 address; /* of its condition */
	u64 interpreter;
};

struct tasks_end {
	s32 error; /* as of snapshot__tasks; -ENOEXEC: the process runs no CPython; -EAGAIN: not yet */
	u32 all, waiting, more;
	u64 cost_ns; /* CPU time of the reading */
	u64 delay_ns; /* from the request to the reading of tasks */
};

struct tasks_message {
	u32 kind;
	union {
		struct tasks_function function;
		struct tasks_group group;
		struct tasks_name name;
		struct tasks_gil gil;
		struct python_program program;
		struct tasks_end end;
	};
};

struct task_readers {
	pid_t pids[TASK_READERS_MAX]; /* 0: none */
	u32 targets[TASK_READERS_MAX]; /* the process that this child reads */
};

/* Returns the socket of a new child, or negative errno (-EAGAIN: there are too many, or one reads this process). */
int task_readers__start(struct task_readers *r, u32 pid, bool remote_files);
/* A child of the process has been waited for. */
void task_readers__ended(struct task_readers *r, pid_t pid);
