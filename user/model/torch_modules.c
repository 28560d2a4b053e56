// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/torch_modules.h"

#include <errno.h>
#include <stdlib.h>

#include "util/array.h"
#include "util/compare.h"
#include "util/saturate.h"
#include "util/search.h"

/* About 64 MiB of operators that created a node, and 24 MiB of nodes */

/* Each thread counts its own sequence numbers. */
struct torch_created {
	u32 pid;
	u32 thread; /* PyTorch's number; 0: the thread had none yet, as when it creates its first node */
	s64 sequence;
};

/* Threads without a number created nodes with this sequence number in different modules. */
#define PATH_AMBIGUOUS (~0u)

struct torch_thread_id {
	u32 pid, tid;
};

struct node {
	u64 start, end;
	u32 path;
};

struct torch_module_nodes {
	struct node *list; /* by start */
	u32 n;
};

struct reading {
	struct torch_modules *modules;
	u32 nodes;
};

static int add_created(struct torch_modules *m, const struct torch_span *c)
{
	struct torch_created key = { c->pid, c->made_by, c->sequence };
	u32 path, *known;
	int err = module_paths__of(&m->paths, c->stack, &path);

	if (err || !path)
		return err;
	if (m->created.n == TORCH_MODULE_NODES_MAX) {
		known = map__find(&m->created, &key);
		m->dropped += !known;
	} else {
		known = map__get(&m->created, &key);
		err = known ? 0 : -ENOMEM;
	}
	if (known)
		*known = key.thread || !*known || *known == path ? path : PATH_AMBIGUOUS;
	return err;
}

static u32 path_of_node(const struct torch_modules *m, const struct torch_span *c)
{
	struct torch_created key = { c->pid, c->made_by, c->sequence };
	const u32 *path = map__find(&m->created, &key);

	key.thread = 0;
	path = path ?: map__find(&m->created, &key);
	return path && *path != PATH_AMBIGUOUS ? *path : 0;
}

static int add_node(struct reading *r, const struct torch_span *c)
{
	struct torch_thread_id id = { c->pid, c->tid };
	struct torch_module_nodes *t;
	u32 path = path_of_node(r->modules, c);

	if (!path)
		return 0;
	if (r->nodes == TORCH_MODULE_NODES_MAX) {
		r->modules->dropped++;
		return 0;
	}
	r->nodes++;
	t = map__get(&r->modules->threads, &id);
	return t && array__push(t->list, t->n, (struct node){ c->start, c->end, path }) ? 0 : -ENOMEM;
}

static int on_operator(const struct torch_span *c, const struct torch_span *parent, void *arg)
{
	return c->kind == TORCH_OPERATOR && c->sequence >= 0 && c->stack ? add_created(arg, c) : 0;
}

static int on_node(const struct torch_span *c, const struct torch_span *parent, void *arg)
{
	return c->kind == TORCH_NODE && c->sequence >= 0 ? add_node(arg, c) : 0;
}

COMPARE_BY(by_start, struct node, ASCENDING(start))

static int read_calls(const struct query *q, int (*fn)(const struct torch_span *, const struct torch_span *, void *),
		      void *arg)
{
	struct torch *t;
	int err = torch__new(&t, q);

	if (!err)
		err = torch__read(t, fn, arg);
	torch__free(t);
	return err;
}

/* Another thread may evaluate a node before its operator is handed out, so operators are read first. */
int torch_modules__read(struct torch_modules *m, const struct query *q, const struct stacks *stacks)
{
	struct reading r = { .modules = m };
	int err;

	module_paths__init(&m->paths, stacks);
	map__init(&m->created, sizeof(struct torch_created), sizeof(u32));
	map__init(&m->threads, sizeof(struct torch_thread_id), sizeof(struct torch_module_nodes));
	map__init(&m->sums, sizeof(u32), sizeof(struct torch_module_sum));
	err = read_calls(q, on_operator, m);
	if (!err)
		err = read_calls(q, on_node, &r);
	MAP_EACH(struct torch_module_nodes *t, &m->threads)
		if (t->n)
			qsort(t->list, t->n, sizeof(*t->list), by_start);
	return err;
}

void torch_modules__free(struct torch_modules *m)
{
	for (u32 i = 0; i < m->threads.n; i++)
		free(((struct torch_module_nodes *)map__value(&m->threads, i))->list);
	module_paths__free(&m->paths);
	MAPS_FREE(&m->created, &m->threads, &m->sums);
}

/* Returns the path of the node that is the call or around it; 0: there is none with a path. */
static u32 find_node(const struct torch_modules *m, const struct torch_span *c)
{
	struct torch_thread_id id = { c->pid, c->tid };
	const struct torch_module_nodes *t = map__find(&m->threads, &id);
	u32 i = t ? (u32)SEARCH(t->n, k, t->list[k].start <= c->start) : 0;

	return i && t->list[i - 1].end >= c->end ? t->list[i - 1].path : 0;
}

int torch_modules__add(struct torch_modules *m, const struct torch_span *c, u32 *path)
{
	struct torch_module_sum *s;
	bool is_backward;
	int err = module_paths__of(&m->paths, c->stack, path);

	if (err)
		return err;
	is_backward = !*path;
	if (is_backward)
		*path = find_node(m, c);
	if (!*path || c->kind == TORCH_RANGE)
		return 0;
	s = map__get(&m->sums, path);
	if (!s)
		return -ENOMEM;
	s->calls++;
	s->self_ns = saturate__sum(s->self_ns, c->self_ns);
	s->total_ns = s->self_ns;
	s->backward_ns = saturate__sum(s->backward_ns, is_backward ? c->self_ns : 0);
	return 0;
}

int torch_modules__finish(struct torch_modules *m)
{
	/* a path has a higher number than its parent */
	for (u32 path = m->paths.paths.n; path; path--) {
		const struct torch_module_sum *s = map__find(&m->sums, &path);
		struct torch_module_sum part = s ? *s : (struct torch_module_sum){ 0 }, *around;
		u32 parent = module_paths__parent(&m->paths, path);

		if (!s || !parent)
			continue;
		around = map__get(&m->sums, &parent);
		if (!around)
			return -ENOMEM;
		around->total_ns = saturate__sum(around->total_ns, part.total_ns);
		around->backward_ns = saturate__sum(around->backward_ns, part.backward_ns);
	}
	return 0;
}
