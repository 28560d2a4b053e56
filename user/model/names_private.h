/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by names.c, names_tasks.c, names_title.c, names_torch.c and names_recent.c. */
#pragma once

#include "model/names.h"
#include "util/recent.h"

struct task_key {
	u32 pid, tid;
};

struct kernel_key {
	u64 number;
	u64 pid;
};

struct named_task {
	struct task task; /* must be first: task__name() casts */
	char name[17]; /* comm with a NUL */
	u64 imaged; /* time of the event that set exe and command */
	u64 ranked; /* time of the event that set the rank, or that ended it as another program began */
	u64 python_named; /* time of the event that set task.python or .script */
	u64 named; /* time of the event that set the name: in a chunk, events are in order of kinds, not of time */
	u64 first_fed; /* time of the first event that was fed, not the earliest one */
	bool is_replaced; /* by another program in the same process, at task.end */
	u32 previous; /* index in `earlier` plus 1 of the previous task with this number; 0: none */
};

/* Texts that a recording feeds; the most recently used ones are stored. */
struct recent_texts {
	struct recent table; /* key -> char * */
	u64 young_bytes; /* bytes of the texts in the young generation */
};

struct named_gil {
	u64 interpreter;
	bool is_known;
	bool has_several; /* one after the other: a later interpreter may get the GIL's address */
};

struct named_probe {
	u32 string; /* id of the name */
	char *text; /* a copy in a recording, which evicts strings */
};

struct names {
	const struct schema *schema;
	struct trace *trace; /* has the strings; NULL: a recording feeds them, and stores are limited */
	u64 live; /* CLOCK_MONOTONIC ns: when the trace became complete; 0: not known */
	struct map inner; /* struct task_key with the tid in the task's own pid namespace -> u32 tid, if they differ */
	struct map tasks; /* struct task_key -> struct named_task: the last task with this number */
	struct named_task *earlier; /* the earlier tasks of reused numbers */
	u32 n_earlier;
	struct named_task unstored; /* receives the values of tasks that a recording does not store */
	struct map probes; /* u16 -> struct named_probe */
	struct recent_texts strings; /* by u32 */
	struct recent_texts peers; /* by u32 pid: names of processes that the recording does not follow */
	struct recent_texts titles; /* by u32 pid */
	struct recent_texts texts; /* by struct kernel_key */
	struct recent_texts torch; /* by struct kernel_key: operators by their handle, classes of nodes by their vtable */
	struct map gils; /* struct kernel_key -> struct named_gil, of a whole trace */
	struct trace_task *numbering; /* tasks of reused numbers, by number and start */
	u32 n_numbering;
	struct map instances; /* u32 id -> struct named_task *, of the tasks in numbering */
};

/* Returns the task for a pid and tid in readings, each a number or an id; NULL: not known. */
const struct named_task *names__find(const struct names *n, u32 pid, u32 tid);
/* Returns t or the nearest process that it was forked from, if its exe, command and cgroup are known; NULL: none. */
const struct named_task *names__imaged(const struct names *n, const struct named_task *t);
/* names_tasks.c: gives ids to tasks with reused numbers, once all is fed. 0 or -ENOMEM. */
int names__distinguish(struct names *n);
/* names_torch.c: stores the name in an event torch_operator or torch_class. 0 or -ENOMEM. */
int names__feed_torch(struct names *n, const struct view *v);
/* names_recent.c: stores a text by a key. 0 or -ENOMEM. */
int recent_texts__set(struct recent_texts *t, const void *key, const char *text, u32 len);
/* The same for field `text` of an event. */
int recent_texts__feed(struct recent_texts *t, const void *key, const struct view *v);
/* NULL: there is no such text. */
const char *recent_texts__find(const struct recent_texts *t, const void *key);
/* As recent_texts__find, but marks the text as used. */
const char *recent_texts__use(struct recent_texts *t, const void *key);
void recent_texts__init(struct recent_texts *t, size_t key_size);
/* Evicts tasks if too many are known, ended ones first; call before adding one. */
void names__bound_tasks(struct names *n);
