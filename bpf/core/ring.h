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
 * Neither position ever wraps; a position modulo the size is a place. What
 * begins before the end of the data may reach beyond it, so that a record is
 * always in one piece; the place where the next one begins is counted on as if
 * it had not. A record is a word with its size and then its bytes, padded to 8.
 *
 * Producer: look whether there is room, move head by compare-and-exchange, copy
 * the record, store the size. The exchange makes looking and reserving one step,
 * so that head is never further than `size` from tail. Though only programs of
 * one CPU write to a ring, they do interrupt one another: a tracepoint in an
 * interrupt runs in the midst of a uprobe's program, and a preemptible kernel
 * switches to a thread with a probe of its own. (Not so in an NMI: sonde puts
 * nothing there.) Each failed exchange means that another one has got through.
 *
 * The size stored last says that the record is whole. Where there is none the
 * reader stops, be it the end or a hole whose producer was interrupted: that
 * delays what comes after it and nothing else. For that the loader puts zeroes
 * in place of what it has read before it moves tail: an old record's bytes, which
 * may be anything, can't be taken for a size.
 *
 * Ordering: the reader loads a size with acquire and stores tail with release.
 * The producer's stores must be seen in program order, as x86 has it; for arm64
 * ring__commit has to be a store-release, which only later kernels' BPF has, or
 * an exchange. That it loads tail before it stores into what was freed is a
 * control dependency and needs nothing.
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
