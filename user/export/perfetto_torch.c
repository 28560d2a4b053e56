// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes how much memory of CPUs PyTorch's tensors have, a counter of each process. What was allocated before the
 * recording is not known.
 */
#include <errno.h>
#include <stdlib.h>

#include "export/perfetto.h"
#include "export/torch_blocks.h"

static struct torch_blocks *blocks_of(struct perfetto *p)
{
	if (!p->torch) {
		p->torch = calloc(1, sizeof(*p->torch));
		if (p->torch)
			torch_blocks__init(p->torch);
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
	struct torch_blocks *b = blocks_of(p);
	struct torch_block block;

	perfetto__slice(p, v);
	if (!b)
		return -ENOMEM;
	enter_window(p, b, time);
	if (torch_blocks__change(b, v, &block))
		return -ENOMEM;
	emit_bytes(p, time, block.pid, block.live);
	return 0;
}

void perfetto__free_torch(struct perfetto *p)
{
	if (!p->torch)
		return;
	torch_blocks__free(p->torch);
	free(p->torch);
}
