// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes how much memory of CPUs PyTorch's tensors have, a counter of each process. What was allocated before the
 * recording is not known. And flows from an operator's call to the backward node that it created, and a track with the
 * training steps of each thread.
 */
#include <errno.h>
#include <stdlib.h>

#include "export/perfetto.h"
#include "export/torch_blocks.h"
#include "export/torch_flows.h"
#include "model/torch_steps.h"

struct perfetto_torch {
	struct torch_blocks blocks;
	struct torch_flows flows;
};

static struct perfetto_torch *torch_of(struct perfetto *p)
{
	if (!p->torch) {
		p->torch = calloc(1, sizeof(*p->torch));
		if (p->torch) {
			torch_blocks__init(&p->torch->blocks);
			torch_flows__init(&p->torch->flows);
		}
	}
	return p->torch;
}

static void emit_bytes(struct perfetto *p, u64 time, u32 pid, u64 bytes)
{
	perfetto__counter(p, time, perfetto__track(p, pid, TRACK_TORCH_MEMORY, 0, "PyTorch memory (CPU)", "bytes"),
			  bytes);
}

/* The counters begin again after a pause. */
static void enter_window(struct perfetto *p, struct torch_blocks *b, u64 time)
{
	const struct trace_facts *f = p->e->facts;

	if (!torch_blocks__is_after_pause(b, f, time))
		return;
	for (u32 i = 0; i < b->live.n; i++)
		emit_bytes(p, f->windows[b->window - 1].to, *(const u32 *)map__key(&b->live, i), 0);
	torch_blocks__forget(b);
}

int perfetto__torch_alloc(struct perfetto *p, const struct view *v)
{
	u64 time = (u64)view__get(v, "time");
	struct perfetto_torch *torch = torch_of(p);
	struct torch_blocks *b;
	struct torch_block block;

	perfetto__slice(p, v);
	if (!torch)
		return -ENOMEM;
	b = &torch->blocks;
	enter_window(p, b, time);
	if (torch_blocks__change(b, v, &block))
		return -ENOMEM;
	emit_bytes(p, time, block.pid, block.live);
	return 0;
}

/*
 * An operator's slice is written before it is known whether its graph is evaluated. Perfetto draws no flow that has a
 * beginning only.
 */
void track_event__torch_flow(struct perfetto *p, const struct view *v, const struct drawn_place *at)
{
	struct perfetto_torch *torch;
	struct drawn_place from;
	int end;

	if (torch_flows__sequence(v) < 0)
		return;
	torch = torch_of(p);
	end = torch ? torch_flows__add(&torch->flows, v, at, &from) : -ENOMEM;
	if (end < 0)
		p->packet.failed = true;
	else if (end != TORCH_FLOW_NONE)
		track_event__flow(p, end == TORCH_FLOW_BEGINS ? at : &from, end == TORCH_FLOW_ENDS);
}

static int put_step(struct perfetto *p, const struct torch_loop *l, const struct torch_step *step)
{
	struct interval span = { step->start, step->end };
	char name[32];
	const struct track *t;
	size_t at;

	perfetto__maybe_next_frame(p);
	t = perfetto__reserve_thread(p, l->pid, l->tid, TRACK_TORCH_STEPS, "training steps", &span);
	if (!t)
		return -ENOMEM;
	snprintf(name, sizeof(name), "step %llu", step->number);
	at = track_event__begin(p, span.start, t, TRACK_EVENT_BEGIN);
	track_event__name(p, name);
	track_event__end(p, at);
	at = track_event__begin(p, span.end, t, TRACK_EVENT_END);
	track_event__end(p, at);
	return p->packet.failed ? -ENOMEM : p->err;
}

static int put_loop(const struct torch_loop *l, void *arg)
{
	int err = 0;

	for (u32 i = 0; !err && i < l->n; i++)
		err = put_step(arg, l, &l->steps[i]);
	return err;
}

int perfetto__torch_steps(struct perfetto *p)
{
	return torch_flows__each_loop(p->e, put_loop, p);
}

void perfetto__free_torch(struct perfetto *p)
{
	if (!p->torch)
		return;
	torch_blocks__free(&p->torch->blocks);
	torch_flows__free(&p->torch->flows);
	free(p->torch);
}
