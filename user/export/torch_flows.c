// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "export/torch_flows.h"
#include "model/torch_steps.h"

/*
 * The number of calls without their backward node so far. Calls of graphs that are never evaluated stay among them.
 * When there are more, no further flow is drawn.
 */
#define FORWARD_MAX (1u << 20)

/* Each thread counts its own sequence numbers. */
struct forward_key {
	u32 pid;
	u32 thread; /* PyTorch's number of the thread; 0: not known */
	s64 sequence;
};

void torch_flows__init(struct torch_flows *f)
{
	map__init(&f->forward, sizeof(struct forward_key), sizeof(struct drawn_place));
}

void torch_flows__free(struct torch_flows *f)
{
	map__free(&f->forward);
}

bool torch_flows__is_node(const struct view *v)
{
	return !strcmp(v->event->name, "torch_node");
}

s64 torch_flows__sequence(const struct view *v)
{
	return torch_flows__is_node(v) || !strcmp(v->event->name, "torch_op") ? view__get(v, "sequence") : -1;
}

/* A thread has no number yet when it makes its first node, and traces of older versions have none. */
static struct drawn_place *find_forward(struct torch_flows *f, struct forward_key *key)
{
	struct drawn_place *forward = map__find(&f->forward, key);

	if (forward || !key->thread)
		return forward;
	key->thread = 0;
	return map__find(&f->forward, key);
}

int torch_flows__add(struct torch_flows *f, const struct view *v, const struct drawn_place *at,
		     struct drawn_place *from)
{
	bool is_node = torch_flows__is_node(v);
	struct forward_key key = { at->pid, 0, torch_flows__sequence(v) };
	struct drawn_place *forward;

	if (key.sequence < 0)
		return TORCH_FLOW_NONE;
	key.thread = (u32)view__get(v, is_node ? "made_by" : "thread");
	if (is_node) {
		forward = find_forward(f, &key);
		if (!forward || !forward->tid)
			return TORCH_FLOW_NONE;
		*from = *forward;
		map__remove(&f->forward, &key);
		return TORCH_FLOW_ENDS;
	}
	forward = map__find(&f->forward, &key);
	/* which of two threads without a number made a node is not known */
	if (forward && !key.thread && forward->tid != at->tid)
		forward->tid = 0;
	/* calls around the one that made the node have its number, too, and end later */
	if (forward || f->forward.n == FORWARD_MAX)
		return TORCH_FLOW_NONE;
	forward = map__get(&f->forward, &key);
	if (!forward)
		return -ENOMEM;
	*forward = *at;
	return TORCH_FLOW_BEGINS;
}

int torch_flows__each_loop(const struct export *e, int (*on_loop)(const struct torch_loop *l, void *arg), void *arg)
{
	struct query q = {
		.trace = e->trace,
		.from = e->facts->live,
		.to = e->facts->stop,
		.start = e->facts->start,
		.names = e->names,
		.facts = e->facts,
		.pids = e->pids,
	};
	struct torch_steps *s;
	int err;

	if (!schema__event(trace__schema(e->trace), "torch_range"))
		return 0;
	err = torch_steps__new(&s, &q);
	for (u32 i = 0; !err && i < s->n; i++)
		err = on_loop(&s->loops[i], arg);
	torch_steps__free(s);
	return err;
}
