/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ring that records go through, one a CPU: written by BPF programs, read by
 * the loader. The kernel's own ring buffer would do the same work by three
 * nested calls, a lock and two more calls for the room that is left: too much
 * for something that happens at every call of a traced function. This one is a
 * few instructions in the program itself.
 *
 * All rings are one array map, mapped by the loader, an element a CPU:
 *
 *	head	bytes that were ever reserved; producers move it
 *	tail	bytes that were ever read; the loader moves it
 *	data	size bytes, a power of two, and room for one record behind them
 *
 * Neither position ever wraps; a position modulo the size is an offset into the data. A record that begins before the
 * end of the data may reach beyond it, so that its bytes are always contiguous; positions are counted as if it did
 * not. A record is 8 bytes with its size, and then its bytes, padded to 8.
 *
 * Producer: check that there is room, move head by compare-and-exchange, copy the record, store the size. The exchange
 * makes the check and the reservation one step, so that head is never further than `size` from tail. Only programs of
 * one CPU write to a ring, but they interrupt one another: a tracepoint in an interrupt runs while a uprobe's program
 * does, and a preemptible kernel switches to a thread with a probe of its own. (sonde has no program in an NMI.) Each
 * exchange that fails means that another producer has reserved meanwhile.
 *
 * The size is stored last and says that the record is whole. The reader stops where there is no size: at the end, or at a
 * record whose producer was interrupted, which delays what comes after it and does nothing else. So that the bytes of
 * an old record are never taken for a size, the loader writes zeroes over what it has read before it moves tail.
 *
 * Ordering: the reader loads a size with acquire and stores tail with release. The producer's stores must become visible in
 * program order, which x86 guarantees; on arm64 ring__commit has to be a store-release, which only later kernels have in
 * BPF, or an exchange. The producer loads tail before it stores into freed room: a control dependency orders that.
 */
#ifndef SONDE_RING_H
#define SONDE_RING_H

#include "event.h"

struct ring {
	/* far enough from one another for prefetchers that take lines by pairs */
	u64 head;
	u64 pad1[15];
	u64 tail;
	u64 pad2[15];
	u8 data[];
};

/* What the last record may need behind the data, in whole cache lines. */
#define RING_SLACK (RECORD_MAX + 64)
/* Bytes of a whole ring */
#define RING_BYTES(size) (sizeof(struct ring) + (size) + RING_SLACK)
/* Bytes of data that a record takes */
#define RING_NEED(size) (((u64)(size) + 15) & ~7ULL)

#define RING_NONE (~0ULL)
#define RING_LATE (~1ULL)
/* How often another producer may come in between before a record is given up. */
#define RING_TRIES 8

/* A position to write to; RING_NONE: no room; RING_LATE: another producer came in between. */
static inline __attribute__((always_inline)) u64 ring__try(struct ring *r, u64 size, u64 need)
{
	u64 tail = *(volatile u64 *)&r->tail, head = *(volatile u64 *)&r->head;

	/* signed: a head older than tail is below it, and will not be exchanged */
	if ((s64)(head + need - tail) > (s64)size)
		return RING_NONE;
	return __sync_val_compare_and_swap(&r->head, head, head + need) == head ? head : RING_LATE;
}

/* A position to write to, or RING_NONE. */
static inline __attribute__((always_inline)) u64 ring__reserve(struct ring *r, u64 size, u64 need)
{
	u64 pos = RING_NONE;

	for (int i = 0; i < RING_TRIES; i++) {
		pos = ring__try(r, size, need);
		if (pos != RING_LATE)
			return pos;
	}
	return RING_NONE;
}

/* Where in the data a position is. */
static inline __attribute__((always_inline)) u64 *ring__at(struct ring *r, u64 size, u64 pos)
{
	return (u64 *)(r->data + (pos & (size - 8)));
}

/* From here on the reader may take it. */
static inline __attribute__((always_inline)) void ring__commit(u64 *at, u32 bytes)
{
	__asm__ __volatile__("" ::: "memory");
	*(volatile u64 *)at = bytes;
}

#endif
