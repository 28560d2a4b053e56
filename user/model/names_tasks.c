// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Pids and tids are reused. This gives each task of a trace an identity: the first task with a number has the number
 * itself, each later one an id above all numbers, from its fork on. Later reads of the trace return ids instead of
 * numbers (trace__set_tasks), so that maps with keys of pid and tid distinguish tasks; output goes through
 * names__number.
 */
#include <errno.h>
#include <stdlib.h>

#include "model/merge.h"
#include "model/names_private.h"
#include "util/compare.h"
#include "util/search.h"

struct candidate {
	u32 number;
	u64 start;
	struct named_task *task;
};

COMPARE_BY(by_number, struct candidate, ASCENDING(number), ASCENDING(start))

/*
 * A task without a recorded start counts as older than the trace; if an earlier task had its number, it counts as
 * started at its first event.
 */
static struct candidate candidate_of(struct named_task *t)
{
	u64 start = t->task.start ? t->task.start : t->previous ? t->first_fed : 0;

	return (struct candidate){ t->task.tid, start, t };
}

static struct candidate *list_all(struct names *n, u32 *count)
{
	struct candidate *list = malloc((n->tasks.n + n->n_earlier + 1) * sizeof(*list));

	*count = 0;
	for (u32 i = 0; list && i < n->tasks.n; i++)
		list[(*count)++] = candidate_of(map__value(&n->tasks, i));
	for (u32 i = 0; list && i < n->n_earlier; i++)
		list[(*count)++] = candidate_of(&n->earlier[i]);
	if (list)
		qsort(list, *count, sizeof(*list), by_number);
	return list;
}

/* Gives ids to n > 1 tasks of one number, which are in order of their starts. */
static int add_ids(struct names *names, const struct candidate *list, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		struct trace_task *t = &names->numbering[names->n_numbering];
		struct named_task **slot;

		*t = (struct trace_task){ .number = list[i].number, .id = list[i].number };
		if (i) {
			t->id = TRACE_TASK_IDS + names->n_numbering;
			t->start = list[i].start;
		}
		names->n_numbering++;
		list[i].task->task.id = t->id;
		slot = map__get(&names->instances, &t->id);
		if (!slot)
			return -ENOMEM;
		*slot = list[i].task;
	}
	return 0;
}

int names__distinguish(struct names *n)
{
	u32 count, same;
	struct candidate *list = list_all(n, &count);
	int err = list ? 0 : -ENOMEM;

	n->numbering = err ? NULL : malloc((count + 1) * sizeof(*n->numbering));
	if (!n->numbering)
		err = -ENOMEM;
	for (u32 i = 0; !err && i < count; i += same) {
		for (same = 1; i + same < count && list[i + same].number == list[i].number; same++)
			;
		list[i].task->task.id = list[i].number;
		if (same > 1 && list[i].number)
			err = add_ids(n, &list[i], same);
	}
	free(list);
	if (!err && n->n_numbering)
		trace__set_tasks(n->trace, n->numbering, n->n_numbering);
	return err;
}

u32 names__number(const struct names *n, u32 id)
{
	u32 index = id - TRACE_TASK_IDS;

	return id >= TRACE_TASK_IDS && index < n->n_numbering ? n->numbering[index].number : id;
}

u32 names__machine(const struct names *n, u32 id)
{
	return names__number(n, id) / MERGE_TASKS;
}

void names__held(const struct names *n, u32 id, u64 *since, u64 *until)
{
	u32 number = names__number(n, id), at = SEARCH(n->n_numbering, i, n->numbering[i].number < number);

	*since = 0;
	*until = ~0ull;
	for (; at < n->n_numbering && n->numbering[at].number == number; at++) {
		if (n->numbering[at].id != id)
			continue;
		*since = n->numbering[at].start;
		if (at + 1 < n->n_numbering && n->numbering[at + 1].number == number)
			*until = n->numbering[at + 1].start;
	}
}

void names__each_id(const struct names *n, u32 pid, void (*fn)(u32 id, void *arg), void *arg)
{
	bool any = false;

	for (u32 i = 0; i < n->n_numbering; i++) {
		if (n->numbering[i].number != pid)
			continue;
		fn(n->numbering[i].id, arg);
		any = true;
	}
	if (!any)
		fn(pid, arg);
}

const struct named_task *names__find(const struct names *n, u32 pid, u32 tid)
{
	struct task_key key = { names__number(n, pid), names__number(n, tid ? tid : pid) };
	struct named_task **instance;

	/* a main thread may be named by its number alone, as the owner of a lock is: the process's id is its id, too */
	tid = !tid || tid == key.pid ? pid : tid;
	instance = map__find(&n->instances, &tid);
	if (instance && (tid == pid || (*instance)->task.pid == key.pid))
		return *instance;
	return map__find(&n->tasks, &key);
}
