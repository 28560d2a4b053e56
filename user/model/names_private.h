/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between names.c and names_tasks.c. */
#ifndef SONDE_MODEL_NAMES_PRIVATE_H
#define SONDE_MODEL_NAMES_PRIVATE_H

#include "model/names.h"

struct task_key {
	u32 pid, tid;
};

struct kernel_key {
	u64 number;
	u64 pid;
};

struct named_task {
	struct task task; /* first: task__name() */
	char name[17]; /* comm with a NUL */
	u64 imaged; /* when exe and command were */
	u64 named; /* when the name was: in a chunk, events are stored by kind and not by time */
	u64 seen; /* of the first event fed; not the earliest, for the same reason */
	u32 before; /* the task that had the number before: index in `earlier` plus 1; 0: none */
};

struct names {
	const struct schema *schema;
	struct trace *trace; /* has the strings; NULL: they are fed */
	struct map tasks; /* struct task_key -> struct named_task: the last that had the number */
	struct named_task *earlier; /* those that had it before: numbers are used again */
	u32 n_earlier, room;
	struct map probes; /* u16 -> u32 string id */
	struct map strings; /* u32 -> char * */
	struct map kernels; /* struct kernel_key -> char * */
	struct trace_task *numbering; /* tasks of numbers that were used again, by number and start */
	u32 n_numbering;
	struct map instances; /* u32 id -> struct named_task *, of these */
};

/* The task of a pid and tid of readings, each a number or an id; NULL: never seen. */
const struct named_task *names__find(const struct names *n, u32 pid, u32 tid);
/* names_tasks.c: gives ids to tasks that had a number after another one. All has been fed. 0 or -ENOMEM. */
int names__tell_apart(struct names *n);

#endif
