// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Allocations: from the shim's events, which have the device, joined with the call at the same address and time, which
 * has the thread and stack; in a process without a shim from the calls alone.
 */
#include "model/gpu_private.h"

#include <errno.h>

#include "probes/cuda/cuda.h"

/* More addresses are not stored: allocators reuse theirs. */
#define ADDRESSES_MAX (1u << 20)

struct address_key {
	u64 address;
	u32 pid, unused;
};

/* The allocation at an address */
struct address {
	u64 bytes; /* 0: released */
	u32 device, memory;
};

static struct address *address_of(struct gpu_model *m, u32 pid, u64 address)
{
	struct address_key key = { address, pid, 0 };

	if (!m->addresses.key_size)
		map__init(&m->addresses, sizeof(key), sizeof(struct address));
	return m->addresses.n < ADDRESSES_MAX ? map__get(&m->addresses, &key) : map__find(&m->addresses, &key);
}

static bool is_memory(const struct gpu_host_item *c)
{
	return c->span.request == REQUEST_ALLOCATION || c->span.request == REQUEST_RELEASE;
}

static int emit(struct gpu_model *m, struct gpu_allocation *i)
{
	struct address *a = address_of(m, i->pid, i->address);

	if (a && i->release) {
		i->bytes = a->bytes;
		if (i->host_time && a->bytes)
			i->memory = a->memory;
		if (i->device == GPU_NO_DEVICE && a->bytes)
			i->device = a->device;
		a->bytes = 0;
	} else if (a) {
		a->bytes = i->bytes;
		a->device = i->device;
		a->memory = i->memory;
	} else if (i->release) {
		i->bytes = 0;
	}
	if (!gpu_model__is_selected(m, i->time, i->time))
		return 0;
	m->coverage.allocations++;
	return m->listener->allocation(i, m->arg);
}

int gpu_memory__take_call(struct gpu_model *m, const struct gpu_host_item *c)
{
	static const u8 kinds[] = {
		[CUDA_MEMORY_DEVICE] = GPU_MEMORY_DEVICE,   [CUDA_MEMORY_HOST] = GPU_MEMORY_PINNED,
		[CUDA_MEMORY_MANAGED] = GPU_MEMORY_MANAGED, [CUDA_MEMORY_POOL] = GPU_MEMORY_DEVICE,
		[CUDA_MEMORY_ARRAY] = GPU_MEMORY_ARRAY,	    [CUDA_MEMORY_PHYSICAL] = GPU_MEMORY_DEVICE,
	};
	const struct gpu_process *p = gpu_facts__process(m, c->pid);
	struct gpu_memory_item *i;

	if (!m->listener->allocation || !is_memory(c) || !c->span.object || c->span.ret || c->open ||
	    (p && p->has_memory))
		return 0;
	i = gpu_queue__add(&m->memory);
	if (!i)
		return -ENOMEM;
	i->time = c->end;
	i->a = (struct gpu_allocation){
		.pid = c->pid,
		.tid = c->tid,
		.time = c->end,
		.address = c->span.object,
		.bytes = c->bytes,
		.device = c->device,
		.memory = c->kind < sizeof(kinds) ? kinds[c->kind] : (u8)GPU_MEMORY_UNKNOWN,
		.release = c->span.request == REQUEST_RELEASE,
		.asynchronous = c->span.stream || c->kind == CUDA_MEMORY_POOL,
		.host_time = true,
		.stack = c->span.stack,
	};
	return 0;
}

int gpu_memory__emit(struct gpu_model *m, struct gpu_memory_item *i)
{
	const struct gpu_span *s;

	if (!m->listener->allocation)
		return 0;
	s = i->a.host_time ? NULL : gpu_join__memory(m, &i->a, &i->a.tid);
	if (s)
		i->a.stack = s->stack;
	return emit(m, &i->a);
}
