// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * PyTorch's calls as stacks: each has its own time, below the calls around it, the outermost below its Python stack if
 * that was recorded. The model passes a call once it and those within it have ended, so the calls of an outermost one
 * are collected until it ends, and then put into the tree.
 */
#include <errno.h>
#include <stdlib.h>

#include "export/profiles.h"
#include "model/torch.h"
#include "util/array.h"
#include "util/compare.h"

struct operation {
	u64 start, end, self_ns;
	u32 name, stack;
	u32 node; /* of the tree, once the call is in it */
};

struct thread {
	u32 pid, tid;
};

/* The calls of a thread within its outermost call */
struct operations {
	struct operation *list;
	u32 n;
};

struct reading {
	struct profiles *p;
	struct stack_profile *profile;
	struct torch *torch;
	struct map threads; /* struct thread -> struct operations */
};

COMPARE_BY(by_start, struct operation, ASCENDING(start), DESCENDING(end))

/* Puts the calls of a process into the tree. Those around a call precede it. */
static int put_operations(struct reading *r, u32 pid, struct operations *s)
{
	struct call_tree *t = &r->profile->tree;
	u32 function, depth = 0, *around = calloc(s->n, sizeof(*around));
	int err = around ? 0 : -ENOMEM;

	qsort(s->list, s->n, sizeof(*s->list), by_start);
	for (u32 i = 0; !err && i < s->n; i++) {
		struct operation *c = &s->list[i];
		u32 caller;

		while (depth && s->list[around[depth - 1]].end <= c->start)
			depth--;
		if (depth)
			caller = s->list[around[depth - 1]].node;
		else
			err = profiles__process(r->p, t, pid, &caller);
		if (!err && !depth && c->stack)
			err = call_tree__stack(t, caller, c->stack, &caller);
		if (!err)
			err = call_functions__note(&r->p->functions, CALL_NOTE, torch__name(r->torch, c->name),
						   &function);
		if (!err)
			err = call_tree__child(t, caller, function, 0, &c->node);
		if (!err)
			profiles__add_amount(r->profile, c->node, c->self_ns);
		around[depth++] = i;
	}
	free(around);
	s->n = 0;
	return err;
}

static int on_call(const struct torch_span *c, const struct torch_span *parent, void *arg)
{
	struct thread thread = { c->pid, c->tid };
	struct reading *r = arg;
	struct operations *s = map__get(&r->threads, &thread);

	if (!s ||
	    !array__push(s->list, s->n, ((struct operation){ c->start, c->end, c->self_ns, c->name, c->stack, 0 })))
		return -ENOMEM;
	return parent ? 0 : put_operations(r, c->pid, s);
}

int profiles__add_torch(struct profiles *p, struct stack_profile *profile)
{
	const struct trace_facts *facts = p->e->facts;
	const struct query q = {
		.trace = p->e->trace, .from = facts->live, .to = facts->stop, .names = p->e->names, .facts = facts
	};
	struct reading r = { .p = p, .profile = profile };
	int err = torch__new(&r.torch, &q);

	map__init(&r.threads, sizeof(struct thread), sizeof(struct operations));
	if (!err)
		err = torch__read(r.torch, on_call, &r);
	MAP_EACH(struct operations *s, &r.threads)
		free(s->list);
	map__free(&r.threads);
	torch__free(r.torch);
	return err;
}
