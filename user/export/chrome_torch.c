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

void chrome_torch__init(struct chrome *c)
{
	torch_flows__init(&c->torch_flows);
	torch_blocks__init(&c->blocks);
}

void chrome_torch__free(struct chrome *c)
{
	torch_flows__free(&c->torch_flows);
	torch_blocks__free(&c->blocks);
}

void chrome_torch__put_args(struct export *e, const struct view *v)
{
	s64 sequence = torch_flows__sequence(v);

	if (sequence >= 0)
		fprintf(e->out, ",\"Sequence number\":%lld,\"Fwd thread id\":%lld", sequence,
			torch_flows__is_node(v) ? view__get(v, "made_by") : 0);
}

static void put_end(struct export *e, const char *phase, const struct drawn_place *at, u64 id)
{
	chrome__next_event(e);
	fprintf(e->out, "{\"ph\":\"%s\",\"name\":\"fwdbwd\",\"cat\":\"fwdbwd\",\"pid\":%u,\"tid\":%u,\"ts\":", phase,
		chrome__number(at->pid), chrome__number(at->tid));
	chrome__put_time(e, at->start);
	fprintf(e->out, ",\"id\":%llu%s}", id, *phase == 'f' ? ",\"bp\":\"e\"" : "");
}

int chrome_torch__put_flow(struct export *e, const struct view *v, const struct drawn_place *at)
{
	struct chrome *c = e->data;
	struct drawn_place from;
	int end = torch_flows__add(&c->torch_flows, v, at, &from);

	if (end != TORCH_FLOW_ENDS)
		return end < 0 ? end : 0;
	c->flows++;
	put_end(e, "s", &from, c->flows);
	put_end(e, "f", at, c->flows);
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

/* A program's own marks are exported as its ranges. */
static int put_loop(const struct torch_loop *l, void *arg)
{
	int err = 0;

	for (u32 i = 0; !err && !l->is_marked && i < l->n; i++)
		err = put_step(arg, l, &l->steps[i]);
	return err;
}

int chrome_torch__put_steps(struct export *e)
{
	return torch_flows__each_loop(e, put_loop, e);
}
