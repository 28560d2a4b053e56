// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Operators and backward nodes of PyTorch in the form of torch.profiler's traces (Kineto): arguments, and flows
 * "fwdbwd" from an operator's call to the backward node that it created, by the sequence number that both have.
 */
#include <errno.h>
#include <string.h>

#include "export/chrome.h"
#include "model/torch_steps.h"
#include "model/view.h"

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

void chrome_torch__init(struct chrome *c)
{
	map__init(&c->forward, sizeof(struct forward_key), sizeof(struct chrome_place));
	torch_blocks__init(&c->blocks);
}

void chrome_torch__free(struct chrome *c)
{
	map__free(&c->forward);
	torch_blocks__free(&c->blocks);
}

static bool is_node(const struct view *v)
{
	return !strcmp(v->event->name, "torch_node");
}

/* Returns the sequence number; -1: none, or another kind of event. */
static s64 sequence_of(const struct view *v)
{
	return is_node(v) || !strcmp(v->event->name, "torch_op") ? view__get(v, "sequence") : -1;
}

void chrome_torch__put_args(struct export *e, const struct view *v)
{
	s64 sequence = sequence_of(v);

	if (sequence >= 0)
		fprintf(e->out, ",\"Sequence number\":%lld,\"Fwd thread id\":%lld", sequence,
			is_node(v) ? view__get(v, "made_by") : 0);
}

static void put_end(struct export *e, const char *phase, const struct chrome_place *at, u64 id)
{
	chrome__next_event(e);
	fprintf(e->out, "{\"ph\":\"%s\",\"name\":\"fwdbwd\",\"cat\":\"fwdbwd\",\"pid\":%u,\"tid\":%u,\"ts\":", phase,
		chrome__number(at->pid), chrome__number(at->tid));
	chrome__put_time(e, at->start);
	fprintf(e->out, ",\"id\":%llu%s}", id, *phase == 'f' ? ",\"bp\":\"e\"" : "");
}

/* A thread has no number yet when it makes its first node, and traces of older versions have none. */
static struct chrome_place *find_forward(struct chrome *c, struct forward_key *key)
{
	struct chrome_place *forward = map__find(&c->forward, key);

	if (forward || !key->thread)
		return forward;
	key->thread = 0;
	return map__find(&c->forward, key);
}

int chrome_torch__put_flow(struct export *e, const struct view *v, const struct chrome_place *at)
{
	struct chrome *c = e->data;
	struct forward_key key = { at->pid, (u32)view__get(v, is_node(v) ? "made_by" : "thread"), sequence_of(v) };
	struct chrome_place *forward;

	if (key.sequence < 0)
		return 0;
	if (is_node(v)) {
		forward = find_forward(c, &key);
		if (!forward || !forward->tid)
			return 0;
		c->flows++;
		put_end(e, "s", forward, c->flows);
		put_end(e, "f", at, c->flows);
		map__remove(&c->forward, &key);
		return 0;
	}
	forward = map__find(&c->forward, &key);
	/* which of two threads without a number made a node is not known */
	if (forward && !key.thread && forward->tid != at->tid)
		forward->tid = 0;
	/* calls around the one that made the node have its number, too, and end later */
	if (forward || c->forward.n == FORWARD_MAX)
		return 0;
	forward = map__get(&c->forward, &key);
	if (!forward)
		return -ENOMEM;
	*forward = *at;
	return 0;
}

int chrome_torch__put_memory(struct export *e, const struct view *v)
{
	u32 pid = (u32)view__get(v, "pid"), tid = (u32)view__get(v, "tid");
	u64 time = (u64)view__get(v, "time");
	struct chrome *c = e->data;
	struct torch_block block;

	if (torch_blocks__is_after_pause(&c->blocks, e->facts, time))
		torch_blocks__forget(&c->blocks);
	if (torch_blocks__change(&c->blocks, v, &block) || chrome__put_names(e, pid, tid))
		return -ENOMEM;
	if (!block.bytes)
		return 0;
	chrome__next_event(e);
	fprintf(e->out,
		"{\"ph\":\"i\",\"s\":\"t\",\"name\":\"[memory]\",\"cat\":\"cpu_instant_event\",\"pid\":%u,\"tid\":%u,",
		chrome__number(pid), chrome__number(tid));
	fputs("\"ts\":", e->out);
	chrome__put_time(e, time);
	fprintf(e->out,
		",\"args\":{\"Total Reserved\":0,\"Total Allocated\":%llu,\"Bytes\":%s%llu,\"Device Id\":-1,\"Device Type\":0,"
		"\"Addr\":%llu,\"finished\":false,\"Ev Idx\":%llu}}",
		block.live, block.is_release ? "-" : "", block.bytes, block.address, chrome_kineto__next_index(c));
	return ferror(e->out) ? -EIO : 0;
}

static int put_step(struct export *e, const struct torch_loop *l, const struct torch_step *step)
{
	u32 tid;
	int err = chrome__place(e, l->pid, l->tid, "steps", NULL, &(struct interval){ step->start, step->end }, &tid);

	if (err)
		return err;
	chrome__next_event(e);
	fprintf(e->out,
		"{\"ph\":\"X\",\"name\":\"ProfilerStep#%llu\",\"cat\":\"user_annotation\",\"pid\":%u,\"tid\":%u,\"ts\":",
		step->number, chrome__number(l->pid), chrome__number(tid));
	chrome__put_time(e, step->start);
	chrome__put_dur(e, step->start, step->end);
	fputs(",\"args\":{", e->out);
	if (((struct chrome *)e->data)->is_kineto)
		chrome_kineto__put_ids(e, 0);
	fputs("}}", e->out);
	return 0;
}

int chrome_torch__put_steps(struct export *e)
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
		for (u32 k = 0; !err && !s->loops[i].is_marked && k < s->loops[i].n; k++)
			err = put_step(e, &s->loops[i], &s->loops[i].steps[k]);
	torch_steps__free(s);
	return err;
}
