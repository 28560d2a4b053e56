/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ring that records go through, one per CPU: BPF programs write to it, the worker reads it. The kernel's own ring
 * buffer needs three nested calls, a lock and two more calls to learn how much room is left, which is too expensive
 * for something that happens at every call of a traced function. This ring needs a few instructions in the program
 * itself.
 *
 * All rings are one array map that the worker maps, with one element per CPU:
 *
 *	head	bytes that were ever reserved; producers advance it
 *	tail	bytes that were ever read; the worker advances it
 *	data	`size` bytes, a power of two, followed by room for one record
 *
 * Neither position ever wraps; a position modulo the size is an offset into the data. A record that begins before the
 * end of the data may extend beyond it, so that its bytes are always contiguous; the positions ignore this. A record
 * is 8 bytes with its size, followed by its bytes, padded to a multiple of 8.
 *
 * Producer: check that there is room, advance head by compare-and-exchange, copy the record, store the size. The
 * exchange makes the check and the reservation one step, so that head is never more than `size` ahead of tail. Only
 * programs on one CPU write to a ring, but they interrupt one another: a tracepoint in an interrupt runs during a
 * uprobe's program, and a preemptible kernel switches to another thread with a probe. (sonde has no program in an
 * NMI.) A failed exchange means that another producer has reserved meanwhile.
 *
 * The size is stored last and marks the record as complete. The reader stops at a size of 0: at the end, or at a
 * record whose producer was interrupted. The latter only delays the records behind it. The worker zeroes what it has
 * read before it advances tail, so that bytes of an old record never count as a size.
 *
 * Ordering: the reader loads a size with acquire and stores tail with release. The producer's stores must become
 * visible in program order, which x86 guarantees. The producer loads tail before it stores into freed room: a control
 * dependency orders that.
 */
#pragma once

#include "event.h"

struct ring {
	/* on different pairs of cache lines, as prefetchers load lines in pairs */
	u64 head;
	u64 pad1[15];
	u64 tail;
	u64 pad2[15];
	u8 data[];
};

/* Bytes of the largest record: one with a batch of the shim (core/shim.h). A multiple of a cache line. */
#define RING_RECORD_MAX 16448
/* The last record may extend beyond the data by this much. */
#define RING_SLACK (RING_RECORD_MAX + 64)
/* Bytes of a whole ring. */
#define RING_BYTES(size) (sizeof(struct ring) + (size) + RING_SLACK)
/* Bytes of data that a record takes. */
#define RING_NEED(size) (((u64)(size) + 15) & ~7ULL)

#define RING_NONE (~0ULL)
#define RING_LATE (~1ULL)
/* Attempts to reserve room while other producers reserve; after the last one the record is lost. */
#define RING_TRIES 8

/* Returns a position to write to; RING_NONE: no room; RING_LATE: another producer reserved meanwhile. */
static inline __attribute__((always_inline)) u64 ring__try(struct ring *r, u64 size, u64 need)
{
	u64 tail = *(volatile u64 *)&r->tail, head = *(volatile u64 *)&r->head;

	/* signed: an outdated head may be below tail, and its exchange will fail */
	if ((s64)(head + need - tail) > (s64)size)
		return RING_NONE;
	return __sync_val_compare_and_swap(&r->head, head, head + need) == head ? head : RING_LATE;
}

/* Returns a position to write to, or RING_NONE. */
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

/* The address of a position in the data. */
static inline __attribute__((always_inline)) u64 *ring__at(struct ring *r, u64 size, u64 pos)
{
	return (u64 *)(r->data + (pos & (size - 8)));
}

/* Makes the record visible to the reader. */
static inline __attribute__((always_inline)) void ring__commit(u64 *at, u32 bytes)
{
	__asm__ __volatile__("" ::: "memory");
	*(volatile u64 *)at = bytes;
}
