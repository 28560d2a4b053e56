// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads collective operations of NCCL and of PyTorch's c10d. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/collectives.h"
#include "model/nccl_kernels.h"
#include "util/array.h"
#include "util/compare.h"

#define EXECUTION "c10d::ProcessGroupGloo::AsyncWork::execute"
/* Threads that execute the operations of one process group (ProcessGroupGloo::Options) */
#define GROUP_THREADS 2

COMPARE_BY(by_call, struct collective, ASCENDING(call), ASCENDING(end))

static void sort(struct collective_rank *r)
{
	if (r->n)
		qsort(r->list, r->n, sizeof(*r->list), by_call);
}

static int add_rank(struct collective_ranks *c, u32 pid, u32 *index)
{
	*index = c->n;
	return array__push(c->list, c->n, (struct collective_rank){ .pid = pid, .tid = pid }) ? 0 : -ENOMEM;
}

/* Returns the rank of this process in this communicator; NULL: no memory. */
static struct collective_rank *nccl_rank(struct collective_ranks *c, struct map *ranks, u32 pid, u64 comm,
					 const struct nccl_rank *rank)
{
	u32 *index = map__find(ranks, &rank), new;
	struct collective_rank *r;

	if (index)
		return &c->list[*index];
	index = map__get(ranks, &rank);
	if (!index || add_rank(c, pid, &new))
		return NULL;
	*index = new;
	r = &c->list[new];
	r->is_nccl = true;
	r->hash = rank->hash;
	r->comm = comm;
	r->rank = rank->rank;
	r->size = rank->size;
	r->is_new = rank->is_new;
	return r;
}

static int add_nccl_op(struct collective_ranks *c, struct map *ranks, const struct nccl_calls *calls,
		       const struct nccl_kernels *kernels, u32 i)
{
	const struct nccl_op *op = &calls->ops[i];
	const struct nccl_kernel *k = nccl_kernels__of(kernels, i);
	struct collective one = {
		.call = op->start,
		.start = k ? k->start : op->start,
		.end = k ? k->end : op->end,
		.bytes = op->bytes,
		.function = nccl_calls__function_name(calls, op->function),
		.has_device = k != NULL,
		.is_open = op->is_open,
	};
	struct collective_rank *r = nccl_rank(c, ranks, op->pid, op->comm, op->rank);

	if (!r)
		return -ENOMEM;
	r->tid = op->tid;
	return array__push(r->list, r->n, one) ? 0 : -ENOMEM;
}

/* Where kernels are recorded, the last operations without one have not ended: CUPTI reports kernels that have. */
static void open_last(struct collective_rank *r, u64 end)
{
	for (u32 i = r->n; i && !r->list[i - 1].has_device; i--) {
		r->list[i - 1].is_open = true;
		r->list[i - 1].end = end;
	}
}

/* Adds ranks that have called no collective: the others may wait for them. */
static int add_idle_ranks(struct collective_ranks *c, struct map *ranks, const struct nccl_calls *calls,
			  const struct query *q)
{
	MAP_EACH_ENTRY(const struct nccl_handles *h, const struct nccl_handle *key, &calls->comms) {
		for (u32 i = 0; i < h->n; i++)
			if (h->list[i].hash && trace_ids__have(&q->pids, key->pid) &&
			    !nccl_rank(c, ranks, key->pid, key->comm, &h->list[i]))
				return -ENOMEM;
	}
	return 0;
}

static int read_nccl(struct collective_ranks *c, const struct query *q)
{
	struct nccl_calls calls;
	struct nccl_kernels kernels = { 0 };
	struct map ranks; /* const struct nccl_rank * -> u32 index in c->list */
	u64 end = query__window(q).to;
	int err = nccl_calls__read(&calls, q);

	map__init(&ranks, sizeof(struct nccl_rank *), sizeof(u32));
	if (!err)
		err = nccl_kernels__read(&kernels, &calls, q);
	for (u32 i = 0; !err && i < calls.n_ops; i++)
		if (calls.ops[i].is_collective)
			err = add_nccl_op(c, &ranks, &calls, &kernels, i);
	if (!err)
		err = add_idle_ranks(c, &ranks, &calls, q);
	for (u32 i = 0; i < c->n; i++) {
		sort(&c->list[i]);
		if (kernels.is_complete && map__find(&kernels.devices, &c->list[i].pid))
			open_last(&c->list[i], end);
	}
	map__free(&ranks);
	nccl_kernels__free(&kernels);
	nccl_calls__free(&calls);
	return err;
}

/* The events of one process that uses c10d */
struct source {
	struct collective *executions, *waits;
	u32 *tids; /* of the waits */
	u32 n_executions, n_waits, n_tids;
	u32 threads[GROUP_THREADS], n_threads; /* the first that execute, and their number up to one more */
};

struct reading {
	struct map sources; /* u32 pid -> struct source */
	const struct names *names;
};

static void add_thread(struct source *s, u32 tid)
{
	for (u32 i = 0; i < s->n_threads && i < GROUP_THREADS; i++)
		if (s->threads[i] == tid)
			return;
	if (s->n_threads < GROUP_THREADS)
		s->threads[s->n_threads] = tid;
	if (s->n_threads <= GROUP_THREADS)
		s->n_threads++;
}

static int on_collectives(const struct rows *rows, void *arg)
{
	struct reading *r = arg;
	bool has_room;

	ROWS_EACH(v, rows) {
		u32 pid = (u32)view__get(&v, "pid"), tid = (u32)view__get(&v, "tid");
		struct source *s = map__get(&r->sources, &pid);
		struct collective one = {
			.call = (u64)view__get(&v, "start"),
			.start = (u64)view__get(&v, "start"),
			.end = (u64)view__get(&v, "time"),
			.is_open = (u16)view__get(&v, "flags") & EVENT_OPEN,
		};
		const char *name = names__probe(r->names, (u16)view__get(&v, "probe"));

		if (!s)
			return -ENOMEM;
		if (name && !strcmp(name, EXECUTION)) {
			has_room = array__push(s->executions, s->n_executions, one);
			add_thread(s, tid);
		} else {
			has_room = array__push(s->waits, s->n_waits, one) && array__push(s->tids, s->n_tids, tid);
		}
		if (!has_room)
			return -ENOMEM;
	}
	return 0;
}

/* Removes the waits within another one: the reducer of DistributedDataParallel waits for several. */
static void drop_inner(struct collective_rank *r)
{
	u32 n = 0;

	for (u32 i = 0; i < r->n; i++)
		if (!n || r->list[i].end > r->list[n - 1].end)
			r->list[n++] = r->list[i];
	r->n = n;
}

/* Adds what threads of gloo executed; without such events, the waits. */
static int add_source(struct collective_ranks *c, u32 pid, struct source *s)
{
	struct collective_rank *r;
	u32 index;

	if (add_rank(c, pid, &index))
		return -ENOMEM;
	r = &c->list[index];
	r->tid = s->n_tids ? s->tids[s->n_tids - 1] : pid;
	r->list = s->n_executions ? s->executions : s->waits;
	r->n = s->n_executions ? s->n_executions : s->n_waits;
	r->has_groups = s->n_threads > GROUP_THREADS;
	sort(r);
	if (s->n_executions) {
		s->executions = NULL;
	} else {
		s->waits = NULL;
		drop_inner(r);
	}
	return 0;
}

static int read_torch(struct collective_ranks *c, const struct query *q)
{
	struct reading r = { .names = q->names };
	struct map nccl; /* u32 pid -> u8: processes whose collectives are NCCL's */
	int err = 0;

	map__init(&r.sources, sizeof(u32), sizeof(struct source));
	map__init(&nccl, sizeof(u32), sizeof(u8));
	for (u32 i = 0; i < c->n; i++)
		if (!map__get(&nccl, &c->list[i].pid))
			err = -ENOMEM;
	if (!err)
		err = query__read_kind(q, "torch_collective", on_collectives, &r);
	MAP_EACH_ENTRY(struct source *s, const u32 *pid, &r.sources) {
		if (!err && !map__find(&nccl, pid))
			err = add_source(c, *pid, s);
		free(s->executions);
		free(s->waits);
		free(s->tids);
	}
	MAPS_FREE(&r.sources, &nccl);
	return err;
}

int collective_ranks__read(struct collective_ranks *c, const struct query *q)
{
	int err;

	*c = (struct collective_ranks){ 0 };
	err = read_nccl(c, q);
	return err ? err : read_torch(c, q);
}

void collective_ranks__free(struct collective_ranks *c)
{
	for (u32 i = 0; i < c->n; i++)
		free(c->list[i].list);
	free(c->list);
}
