/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by names.c, names_tasks.c and names_recent.c. */
#ifndef SONDE_MODEL_NAMES_PRIVATE_H
#define SONDE_MODEL_NAMES_PRIVATE_H

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
	struct task task; /* first: task__name() */
	char name[17]; /* comm with a NUL */
	u64 imaged; /* when exe and command were */
	u64 named; /* when the name was: in a chunk, events are stored by kind and not by time */
	u64 seen; /* of the first event fed; not the earliest, for the same reason */
	u32 before; /* the task that had the number before: index in `earlier` plus 1; 0: none */
};

/* Texts that are fed while recording, of which the last ones used are kept. */
struct recent_texts {
	struct recent table; /* the key -> char * */
	u64 young_bytes; /* in the young generation */
};

struct named_probe {
	u32 string; /* id of the name */
	char *text; /* a copy where strings are fed, as those are forgotten */
};

struct names {
	const struct schema *schema;
	struct trace *trace; /* has the strings; NULL: they are fed, while recording, and what is kept is limited */
	struct map tasks; /* struct task_key -> struct named_task: the last that had the number */
	struct named_task *earlier; /* those that had it before: numbers are used again */
	u32 n_earlier;
	struct named_task late; /* unused: takes the values of a task that is not stored while recording */
	struct map probes; /* u16 -> struct named_probe */
	struct recent_texts strings; /* by u32 */
	struct recent_texts kernels; /* by struct kernel_key */
	struct trace_task *numbering; /* tasks of numbers that were used again, by number and start */
	u32 n_numbering;
	struct map instances; /* u32 id -> struct named_task *, of these */
};

/* The task of a pid and tid of readings, each a number or an id; NULL: never seen. */
const struct named_task *names__find(const struct names *n, u32 pid, u32 tid);
/* names_tasks.c: gives ids to tasks that had a number after another one. All has been fed. 0 or -ENOMEM. */
int names__distinguish(struct names *n);
/* names_recent.c: the text of an event that is fed, by a key. 0 or -ENOMEM. */
int recent_texts__feed(struct recent_texts *t, const void *key, const struct view *v);
/* NULL: there is none. */
const char *recent_texts__find(const struct recent_texts *t, const void *key);
/* The same; marks the text as used. */
const char *recent_texts__use(struct recent_texts *t, const void *key);
void recent_texts__init(struct recent_texts *t, size_t key_size);
/* Evicts tasks if too many are known, ended ones first; call before adding one. */
void names__bound_tasks(struct names *n);

#endif
