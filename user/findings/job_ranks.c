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

/* Finds out in which function of the program a rank's thread is. */
static void find_entry(const struct finding_input *in, const struct job_ranks *ranks, struct job_rank *r)
{
	r->entry = r->waits ? entry_of(in, r->waits->stack) : 0;
	for (u32 at = r->samples; at && !r->entry; at = ranks->next_sample[at - 1])
		r->entry = entry_of(
			in, ((const struct profile_sample_key *)map__key(&in->profile->samples, at - 1))->stack);
}

static int index_pids(struct job_ranks *r)
{
	map__free(&r->by_pid);
	for (u32 i = 0; i < r->n; i++) {
		u32 *index = map__get(&r->by_pid, &r->list[i].pid);

		if (!index)
			return -ENOMEM;
		*index = i;
	}
	return 0;
}

/* As job_ranks__of */
static struct job_rank *rank_of(const struct job_ranks *r, u32 pid)
{
	const u32 *index = map__find(&r->by_pid, &pid);

	return index ? &r->list[*index] : NULL;
}

/* Sets the thread of each rank whose waits in collectives are longest. */
static void find_threads(struct job_ranks *r, const struct finding_input *in)
{
	MAP_EACH_ENTRY(const struct rank_waits *w, const struct thread_key *key, &in->ranks->threads) {
		struct job_rank *rank = rank_of(r, key->pid);

		if (!rank || (rank->waits && w->ns <= rank->waits->ns))
			continue;
		rank->waits = w;
		rank->thread = *key;
	}
}

/* Drops processes that ended before they ran, or that were not selected. */
static int keep_measured(struct job_ranks *r, const struct finding_input *in)
{
	u32 n = 0;

	for (u32 i = 0; i < r->n; i++) {
		const struct profile_thread *t = map__find(&in->profile->threads, &r->list[i].thread);

		r->list[i].wall_ns = t ? t->wall : 0;
		if (r->list[i].wall_ns)
			r->list[n++] = r->list[i];
	}
	r->n = n;
	return index_pids(r);
}

static int find_samples(struct job_ranks *r, const struct finding_input *in)
{
	const struct map *samples = &in->profile->samples;

	r->next_sample = calloc((size_t)samples->n + 1, sizeof(*r->next_sample));
	for (u32 i = 0; r->next_sample && i < samples->n; i++) {
		const struct profile_sample_key *key = map__key(samples, i);
		struct job_rank *rank = rank_of(r, key->thread.pid);

		if (!rank || !thread_key__is_same(rank->thread, key->thread))
			continue;
		r->next_sample[i] = rank->samples;
		rank->samples = i + 1;
	}
	return r->next_sample ? 0 : -ENOMEM;
}

static int add_process(const struct finding_input *in, struct job_ranks *r, u32 pid)
{
	const struct task *task = names__task(in->q->names, pid, 0);
	struct job_rank rank = { .pid = pid, .number = -1, .thread = { pid, pid } };

	if (task) {
		rank.ppid = task->ppid;
		rank.world_size = task->world_size;
		rank.claimed = task->world_size ? task->rank : 0;
	}
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
	map__init(&r->by_pid, sizeof(u32), sizeof(u32));
	for (u32 i = 0; !err && i < in->ranks->processes.n; i++)
		err = add_process(in, r, *(const u32 *)map__key(&in->ranks->processes, i));
	if (err || !r->n)
		return err;
	err = index_pids(r);
	if (!err) {
		find_threads(r, in);
		err = keep_measured(r, in);
	}
	if (!err)
		err = find_samples(r, in);
	if (err)
		return err;
	for (u32 i = 0; i < r->n; i++)
		find_entry(in, r, &r->list[i]);
	sort(r, in);
	return index_pids(r);
}

void job_ranks__free(struct job_ranks *r)
{
	free(r->list);
	free(r->next_sample);
	map__free(&r->by_pid);
}

const struct job_rank *job_ranks__of(const struct job_ranks *r, u32 pid)
{
	return rank_of(r, pid);
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
