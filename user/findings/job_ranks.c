// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/job_ranks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/job.h"
#include "util/array.h"
#include "util/compare.h"
#include "util/path.h"

/* Returns a hash of the program's outermost function on the stack; 0: it has none. */
static u64 entry_of(const struct finding_input *in, u32 stack)
{
	const struct stack_frame *f, *entry = NULL;

	for (u32 at = stack; (f = stacks__frame(in->stacks, at)) != NULL; at = f->caller)
		entry = stack_frame__is_own(f) ? f : entry;
	return entry ? stack_frame__hash(entry) : 0;
}

static u64 sampled_entry(const struct finding_input *in, struct thread_key thread)
{
	u64 entry = 0;

	for (u32 i = 0; i < in->profile->samples.n && !entry; i++) {
		const struct profile_sample_key *key = map__key(&in->profile->samples, i);

		entry = thread_key__is_same(key->thread, thread) ? entry_of(in, key->stack) : 0;
	}
	return entry;
}

/* Sets the thread whose waits in collectives are longest. */
static void find_thread(const struct finding_input *in, struct job_rank *r)
{
	const struct profile_thread *t;

	r->thread = (struct thread_key){ r->pid, r->pid };
	MAP_EACH_ENTRY(const struct rank_waits *w, const struct thread_key *key, &in->ranks->threads) {
		if (key->pid != r->pid || (r->waits && w->ns <= r->waits->ns))
			continue;
		r->waits = w;
		r->thread = *key;
	}
	t = map__find(&in->profile->threads, &r->thread);
	r->wall_ns = t ? t->wall : 0;
	r->entry = r->waits ? entry_of(in, r->waits->stack) : sampled_entry(in, r->thread);
}

static int add_process(const struct finding_input *in, struct job_ranks *r, u32 pid)
{
	const struct task *task = names__task(in->q->names, pid, 0);
	struct job_rank rank = { .pid = pid, .number = -1 };

	if (task) {
		rank.ppid = task->ppid;
		rank.world_size = task->world_size;
		rank.claimed = task->world_size ? task->rank : 0;
	}
	find_thread(in, &rank);
	/* a process that ended before it ran, or that was not selected */
	if (!rank.wall_ns)
		return 0;
	return array__push(r->list, r->n, rank) ? 0 : -ENOMEM;
}

static int compare_job(const struct names *names, const struct job_rank *x, const struct job_rank *y)
{
	int order = job__compare(names, x->pid, y->pid);

	order = order ? order : COMPARE(x->world_size, y->world_size);
	/* a rank that another process has, too, does not show to which job it belongs */
	if (order || (x->world_size && !x->is_shared))
		return order;
	order = COMPARE(x->ppid, y->ppid);
	return order ? order : COMPARE(x->entry, y->entry);
}

static int by_job(const void *a, const void *b, void *names)
{
	const struct job_rank *x = a, *y = b;
	int order = compare_job(names, x, y);

	order = order ? order : COMPARE(x->claimed, y->claimed);
	/* pids rise with the order of starts, and begin again with small ones */
	order = order ? order : COMPARE(x->pid < x->ppid, y->pid < y->ppid);
	return order ? order : COMPARE(x->pid, y->pid);
}

static u32 job_end(const struct job_ranks *r, const struct names *names, u32 from)
{
	u32 to = from + 1;

	while (to < r->n && !compare_job(names, &r->list[from], &r->list[to]))
		to++;
	return to;
}

static bool has_number_twice(const struct job_rank *list, u32 n)
{
	for (u32 i = 1; i < n; i++)
		if (list[i].claimed == list[i - 1].claimed)
			return true;
	return false;
}

/* Returns whether torch.multiprocessing.spawn() started the thread that waits with this stack. */
static bool is_spawned(const struct finding_input *in, const struct job_rank *r)
{
	const struct stack_frame *f;

	for (u32 at = r->waits ? r->waits->stack : 0; (f = stacks__frame(in->stacks, at)) != NULL; at = f->caller)
		if (path__ends_with(f->file, "/torch/multiprocessing/spawn.py") && !strcmp(f->name, "_wrap"))
			return true;
	return false;
}

/*
 * Numbers the ranks of a job. torch.multiprocessing.spawn() starts its processes by their number. It is known if the
 * process that called it was recorded, and so all of its children.
 */
static void set_numbers(const struct finding_input *in, struct job_rank *list, u32 n)
{
	struct thread_key parent = { list->ppid, list->ppid };
	bool has_number = list->world_size && !has_number_twice(list, n), spawned = false;

	for (u32 i = 0; i < n && !has_number; i++)
		spawned = spawned || is_spawned(in, &list[i]);
	spawned = spawned && map__find(&in->profile->threads, &parent);
	for (u32 i = 0; i < n; i++)
		list[i].number = has_number ? (s64)list[i].claimed : spawned ? (s64)i : -1;
}

/* Sorts the ranks, and numbers jobs and ranks. */
static void sort(struct job_ranks *r, const struct finding_input *in)
{
	const struct names *names = in->q->names;
	u32 job = 0;

	qsort_r(r->list, r->n, sizeof(*r->list), by_job, (void *)names);
	for (u32 i = 0, end; i < r->n; i = end) {
		end = job_end(r, names, i);
		for (u32 k = i; r->list[i].world_size && has_number_twice(&r->list[i], end - i) && k < end; k++)
			r->list[k].is_shared = true;
	}
	qsort_r(r->list, r->n, sizeof(*r->list), by_job, (void *)names);
	for (u32 i = 0, end; i < r->n; i = end, job++) {
		end = job_end(r, names, i);
		set_numbers(in, &r->list[i], end - i);
		for (u32 k = i; k < end; k++)
			r->list[k].job = job;
	}
}

int job_ranks__list(struct job_ranks *r, const struct finding_input *in)
{
	int err = 0;

	*r = (struct job_ranks){ 0 };
	for (u32 i = 0; !err && i < in->ranks->processes.n; i++)
		err = add_process(in, r, *(const u32 *)map__key(&in->ranks->processes, i));
	if (!err && r->n)
		sort(r, in);
	return err;
}

const struct job_rank *job_ranks__of(const struct job_ranks *r, u32 pid)
{
	for (u32 i = 0; i < r->n; i++)
		if (r->list[i].pid == pid)
			return &r->list[i];
	return NULL;
}

char *job_rank__label(const struct job_rank *rank, const struct names *names, char *buf, size_t size)
{
	char label[64];

	names__label(names, label, sizeof(label), rank->pid, 0);
	if (rank->number < 0)
		snprintf(buf, size, "a rank (%s)", label);
	else
		snprintf(buf, size, "rank %lld (%s)", (long long)rank->number, label);
	return buf;
}
