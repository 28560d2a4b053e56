/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies the batches of records that the shim hands over (core/shim.h) from the target's memory to the ring, as they
 * are: user/record/shim_batches.c makes events of the records. A run for a batch takes about as long as one record
 * would take here.
 */
#pragma once

#include "core/process_number.bpf.h"
#include "core/shim.h"
#include "core/sonde.bpf.h"
#include "core/stack.h"

static __always_inline s64 clock_shift(struct task_struct *task)
{
	struct timespec64 t = {};

	if (!bpf_core_field_exists(struct nsproxy, time_ns))
		return 0;
	BPF_CORE_READ_INTO(&t, task, nsproxy, time_ns, offsets.monotonic);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* emit() for a record whose last `bytes` bytes are in the target's memory at an address. */
static __always_inline void shim__emit(struct shim_raw *raw, const void *from, u64 bytes)
{
	u32 cpu = bpf_get_smp_processor_id(), size = sizeof(*raw) + bytes;
	struct ring *r = bpf_map_lookup_elem(&rings, &cpu);
	u64 need = RING_NEED(size), pos = r ? ring__try_again(r, need) : RING_NONE, *at;
	u16 family = RAW_FAMILY(raw->event.id);
	struct shim_raw *to;

	if (!r || pos == RING_NONE) {
		loss__add_n(family, LOSS_RING_FULL, raw->event.time, raw->records);
		return;
	}
	at = ring__at(r, ring_size, pos);
	to = (struct shim_raw *)(at + 1);
	raw->event.cpu = cpu;
	*to = *raw;
	if (bpf_probe_read_user(to->data, bytes, from)) {
		to->records = 0;
		loss__add_n(family, LOSS_READ, raw->event.time, raw->records);
	}
	ring__commit(at, size);
	if ((pos ^ (pos + need)) & ~4095ULL && (s64)(pos - *(volatile u64 *)&r->tail) > (s64)ring_mark)
		ring__wake();
}

/* in_lane: the batch is a struct shim_lane_batch, and the records are of the current thread. */
static __always_inline int shim__pass(struct pt_regs *ctx, u16 family, bool in_lane)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 cookie = bpf_get_attach_cookie(ctx), at = ARG1(ctx), now = bpf_ktime_get_ns();
	struct shim_lane_batch head = {};
	struct shim_raw raw = {};
	u64 bytes;

	/* the worker leaves out what is not of a capture range */
	if (!probe__is_armed(cookie))
		return 0;
	if (bpf_probe_read_user(&head, in_lane ? sizeof(head) : sizeof(head.batch), (const void *)at) ||
	    head.batch.magic != SHIM_MAGIC || head.batch.records > SHIM_BATCH_RECORDS) {
		loss__add_n(family, LOSS_READ, now, 1);
		return 0;
	}
	bytes = (u64)head.batch.bytes - sizeof(head.batch);
	KEEP_BOUND(bytes);
	if (bytes > SHIM_BATCH_MAX - sizeof(head.batch)) {
		loss__add_n(family, LOSS_READ, now, 1);
		return 0;
	}
	event__init(&raw.event, RAW_SECOND_OF(family), cookie, now);
	raw.started = task__process_start(task);
	raw.shift = clock_shift(task);
	raw.own_tid = in_lane ? task__ns_number(task) : 0;
	raw.records = head.batch.records;
	shim__emit(&raw, (const void *)(in_lane ? head.at : at + sizeof(head.batch)), bytes);
	return 0;
}
