/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Describes communicators, each once. A communicator is a pointer to a struct ncclComm. After the first call with it,
 * its rank, size and device are read from there, at the offsets that nccl.c finds in the library's DWARF.
 */
#pragma once

#include "core/sonde.bpf.h"
#include "nccl.h"

/* Key: tgid; value: index in nccl_layouts. nccl.c fills this. */
struct nccl_processes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, u32);
};

/* The layouts of struct ncclComm; zeros: not known, or not yet. nccl.c fills this. */
struct nccl_layouts_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NCCL_LAYOUTS);
	__type(key, u32);
	__type(value, struct nccl_layout);
};

/* A process is identified by its tgid and its address space, because programs start each other by exec. */
struct nccl_comm_key {
	u64 comm;
	u64 process;
};

/* Communicators that have been described completely. One that is evicted would be described again. */
struct nccl_comms_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct nccl_comm_key);
	__type(value, u8);
};

extern struct nccl_processes_map nccl_processes SEC(".maps");
extern struct nccl_layouts_map nccl_layouts SEC(".maps");
extern struct nccl_comms_map nccl_comms SEC(".maps");

static __always_inline struct nccl_comm_key comm__key(u64 comm)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 mm = 0;

	/* as a number: the verifier refuses arithmetic on the pointer */
	bpf_probe_read_kernel(&mm, sizeof(mm), &task->mm);
	return (struct nccl_comm_key){ comm, (u32)task->tgid | mm >> 6 << 32 };
}

static __always_inline bool comm__read(u64 at, void *out, u32 size)
{
	return !bpf_probe_read_user(out, size, (const void *)at);
}

/*
 * Fills e from the communicator's memory. Returns false if there is no layout, no communicator, or one that is not
 * complete yet.
 */
static __always_inline bool comm__from_memory(struct nccl_communicator *e)
{
	u32 tgid = e->event.pid, *index = bpf_map_lookup_elem(&nccl_processes, &tgid);
	struct nccl_layout *l = index ? bpf_map_lookup_elem(&nccl_layouts, index) : NULL;
	u64 start = 0, end = 0;

	if (!l || !l->end_magic)
		return false;
	if (!comm__read(e->comm + l->start_magic, &start, sizeof(start)) || start != NCCL_MAGIC ||
	    !comm__read(e->comm + l->end_magic, &end, sizeof(end)) || end != NCCL_MAGIC)
		return false;
	if (!comm__read(e->comm + l->rank, &e->rank, sizeof(e->rank)) ||
	    !comm__read(e->comm + l->size, &e->size, sizeof(e->size)) ||
	    !comm__read(e->comm + l->device, &e->device, sizeof(e->device)) ||
	    !comm__read(e->comm + l->hash, &e->hash, sizeof(e->hash)))
		return false;
	e->source = NCCL_FROM_MEMORY;
	return e->size > 0 && e->rank >= 0 && e->rank < e->size;
}

/*
 * Emits what is known of a communicator, once. rank and size are the arguments of the call that created it. size is 0
 * for other calls: then only the communicator's memory is used. A global function, so that the verifier checks it
 * once and not for each call and state.
 */
__weak __noinline int nccl__describe(u64 comm, s32 rank, s32 size, s32 device)
{
	struct nccl_comm_key key = comm__key(comm);
	struct nccl_communicator e = {};
	u8 yes = 1;

	if (!comm || bpf_map_lookup_elem(&nccl_comms, &key))
		return 0;
	event__init(&e.event, ID_nccl_communicator, 0, bpf_ktime_get_ns());
	e.comm = comm;
	if (!comm__from_memory(&e) || (size && (e.rank != rank || e.size != size))) {
		if (!size)
			return 0;
		/*
		 * created in a group or without blocking: another thread fills it in, and it is described at its
		 * first use
		 */
		e.hash = 0;
		e.rank = rank;
		e.size = size;
		e.device = device;
		e.source = NCCL_FROM_CALL;
	} else if (bpf_map_update_elem(&nccl_comms, &key, &yes, BPF_ANY)) {
		loss__count(EVENT_FAMILY(ID_nccl_communicator), LOSS_MAP_FULL, e.event.time);
	}
	emit(&e, sizeof(e));
	return 0;
}

/* At a use of a communicator: describes it unless that has been done. */
static __always_inline void comm__used(u64 comm)
{
	nccl__describe(comm, 0, 0, -1);
}
