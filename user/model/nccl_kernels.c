// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/nccl_kernels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/gpu.h"
#include "util/array.h"
#include "util/compare.h"
#include "util/search.h"

struct reading {
	struct nccl_kernels *kernels;
	struct gpu_model *model;
};

/* Returns the part of a kernel's name that is one of these, a list ended by NULL; "": none is. */
static const char *part_of(const char *name, const char *const parts[])
{
	for (; *parts; parts++) {
		const char *at = strstr(name, *parts);
		size_t len = strlen(*parts);

		if (at && at > name && at[-1] == '_' && (!at[len] || at[len] == '_'))
			return *parts;
	}
	return "";
}

/* "ncclDevKernel_AllReduce_Sum_f32_RING_LL", before NCCL 2.19 "ncclKernel_AllReduce_RING_LL_Sum_float" */
static void parse(struct nccl_kernel *k, const char *name)
{
	static const char *const algorithms[] = { "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS_TREE", "NVLS",
						  "RING",	    "TREE",	     "PAT",	  NULL };
	static const char *const protocols[] = { "LL128", "LL", "SIMPLE", NULL };

	snprintf(k->algorithm, sizeof(k->algorithm), "%s", part_of(name, algorithms));
	snprintf(k->protocol, sizeof(k->protocol), "%s", part_of(name, protocols));
}

static bool is_of_nccl(const char *name)
{
	return !strncmp(name, "nccl", 4) && strstr(name, "Kernel");
}

static int on_work(const struct gpu_work *w, void *arg)
{
	struct reading *r = arg;
	struct nccl_kernel k = { .start = w->start, .end = w->end };
	const char *name;

	/* a cheap test before the name is demangled */
	if (w->kind != GPU_KERNEL || w->host_time || w->open || !w->name || !strstr(w->name, "nccl"))
		return 0;
	name = gpu_model__short_name(r->model, w->name);
	if (!name || !is_of_nccl(name))
		return 0;
	if (!map__get(&r->kernels->devices, &w->pid))
		return -ENOMEM;
	if (!w->launch) {
		r->kernels->unjoined++;
		return 0;
	}
	k.launch = w->launch->start;
	k.pid = w->launch->pid;
	k.tid = w->launch->tid;
	parse(&k, name);
	return array__push(r->kernels->list, r->kernels->n, k) ? 0 : -ENOMEM;
}

COMPARE_BY(by_launch, struct nccl_kernel, ASCENDING(pid), ASCENDING(tid), ASCENDING(launch), ASCENDING(start))

/* Compares the threads of operations, marks and kernels. */
#define IS_BEFORE(x, y) ((x)->pid != (y)->pid ? (x)->pid < (y)->pid : (x)->tid < (y)->tid)

/* Returns the index of the first operation of the kernel's thread, or of a later thread, that starts at `time`. */
static u32 first_op(const struct nccl_calls *c, const struct nccl_kernel *k, u64 time)
{
	return (u32)SEARCH(c->n_ops, i,
			   IS_BEFORE(&c->ops[i], k) || (!IS_BEFORE(k, &c->ops[i]) && c->ops[i].start < time));
}

static bool is_of_thread(const struct nccl_op *op, const struct nccl_kernel *k)
{
	return op->pid == k->pid && op->tid == k->tid;
}

/* Finds the call of an operation within which the kernel was launched. */
static bool find_op(const struct nccl_calls *c, struct nccl_kernel *k)
{
	u32 i = first_op(c, k, k->launch + 1);

	if (!i || !is_of_thread(&c->ops[i - 1], k) || c->ops[i - 1].end < k->launch)
		return false;
	k->first = i - 1;
	k->n = 1;
	return true;
}

/* Where the kernels' threads are in their calls of ncclGroupStart and ncclGroupEnd, kernel by kernel */
struct groups {
	u32 pid, tid;
	u32 mark; /* the next one */
	u32 depth; /* of groups before it */
	u64 since; /* when the outermost of these began */
};

/* Finds the outermost ncclGroupEnd within which the kernel was launched, and the operations of its group. */
static bool find_group(const struct nccl_calls *c, struct groups *g, struct nccl_kernel *k)
{
	if (g->pid != k->pid || g->tid != k->tid) {
		*g = (struct groups){ .pid = k->pid, .tid = k->tid };
		g->mark = (u32)SEARCH(c->n_marks, i, IS_BEFORE(&c->marks[i], k));
	}
	for (; g->mark < c->n_marks && !IS_BEFORE(k, &c->marks[g->mark]); g->mark++) {
		const struct nccl_mark *m = &c->marks[g->mark];
		u32 end;

		if (m->start > k->launch)
			return false;
		if (!m->is_end) {
			g->since = g->depth++ ? g->since : m->start;
			continue;
		}
		if (g->depth > 1 || m->end < k->launch) {
			g->depth -= g->depth > 0;
			continue;
		}
		k->first = first_op(c, k, g->since);
		end = first_op(c, k, m->start);
		k->n = end > k->first ? end - k->first : 0;
		return k->n;
	}
	return false;
}

/* Joins the n kernels that one group launched with its operations. Returns how many of them remain. */
static u32 join_group(struct nccl_kernel *list, u32 n)
{
	u32 ops = list->n, first = list->first;

	if (ops == n) {
		for (u32 i = 0; i < n; i++) {
			list[i].first = first + i;
			list[i].n = 1;
		}
		return n;
	}
	for (u32 i = 1; i < n; i++) {
		list->start = list[i].start < list->start ? list[i].start : list->start;
		list->end = list[i].end > list->end ? list[i].end : list->end;
	}
	return 1;
}

static int join(struct nccl_kernels *k, const struct nccl_calls *c)
{
	struct groups groups = { 0 };
	u32 joined = 0;

	for (u32 i = 0; i < k->n; i++) {
		if (find_op(c, &k->list[i]) || find_group(c, &groups, &k->list[i]))
			k->list[joined++] = k->list[i];
		else
			k->unjoined++;
	}
	k->n = joined;
	joined = 0;
	for (u32 i = 0, end; i < k->n; i = end) {
		u32 n;

		for (end = i + 1; end < k->n && k->list[end].n > 1 && k->list[end].first == k->list[i].first;)
			end++;
		n = join_group(&k->list[i], end - i);
		memmove(&k->list[joined], &k->list[i], n * sizeof(*k->list));
		joined += n;
	}
	k->n = joined;
	k->of_op = calloc((size_t)c->n_ops + 1, sizeof(*k->of_op));
	for (u32 i = 0; k->of_op && i < k->n; i++)
		for (u32 op = 0; op < k->list[i].n; op++)
			k->of_op[k->list[i].first + op] = i + 1;
	return k->of_op ? 0 : -ENOMEM;
}

int nccl_kernels__read(struct nccl_kernels *k, const struct nccl_calls *calls, const struct query *q)
{
	static const struct gpu_listener listener = { .work = on_work };
	struct reading r = { .kernels = k };
	struct gpu_coverage coverage = { 0 };
	int err;

	*k = (struct nccl_kernels){ 0 };
	map__init(&k->devices, sizeof(u32), sizeof(u8));
	if (!calls->n_ops)
		return 0;
	err = gpu_model__new(&r.model, q->trace, q->names);
	if (!err)
		err = gpu_model__read(r.model, q->from, q->to, &q->pids, &listener, &r, &coverage);
	gpu_model__free(r.model);
	k->is_complete = !coverage.unwatched && !coverage.dropped && !coverage.dropped_bytes;
	if (k->n)
		qsort(k->list, k->n, sizeof(*k->list), by_launch);
	return err ? err : join(k, calls);
}

void nccl_kernels__free(struct nccl_kernels *k)
{
	free(k->list);
	free(k->of_op);
	map__free(&k->devices);
}

const struct nccl_kernel *nccl_kernels__of(const struct nccl_kernels *k, u32 op)
{
	return k->of_op && k->of_op[op] ? &k->list[k->of_op[op] - 1] : NULL;
}
