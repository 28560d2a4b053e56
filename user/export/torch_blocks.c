// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>

#include "export/torch_blocks.h"
#include "model/torch_memory.h"
#include "util/saturate.h"

struct block_key {
	u64 address, pid;
};

void torch_blocks__init(struct torch_blocks *b)
{
	map__init(&b->blocks, sizeof(struct block_key), sizeof(u64));
	map__init(&b->live, sizeof(u32), sizeof(u64));
	b->window = 0;
}

bool torch_blocks__is_after_pause(struct torch_blocks *b, const struct trace_facts *facts, u64 time)
{
	return trace_facts__enter_window(facts, &b->window, time);
}

void torch_blocks__forget(struct torch_blocks *b)
{
	for (u32 i = 0; i < b->live.n; i++)
		*(u64 *)map__value(&b->live, i) = 0;
	map__free(&b->blocks);
}

int torch_blocks__change(struct torch_blocks *b, const struct view *v, struct torch_block *out)
{
	struct block_key key = { (u64)view__get(v, "address"), (u64)(u32)view__get(v, "pid") };
	u32 pid = (u32)key.pid;
	u64 *live = map__get(&b->live, &pid);
	u64 *block = live ? map__get(&b->blocks, &key) : NULL;

	if (!block)
		return -ENOMEM;
	*out = (struct torch_block){ .pid = pid, .address = key.address, .is_release = torch_memory__is_release(v) };
	out->bytes = out->is_release ? *block : (u64)view__get(v, "bytes");
	/* also of an allocation: the release of the block that was there was not recorded */
	*live -= *block < *live ? *block : *live;
	if (!out->is_release) {
		*block = out->bytes;
		*live = saturate__sum(*live, *block);
	}
	out->live = *live;
	if (out->is_release)
		map__remove(&b->blocks, &key);
	return 0;
}

void torch_blocks__free(struct torch_blocks *b)
{
	MAPS_FREE(&b->blocks, &b->live);
}
