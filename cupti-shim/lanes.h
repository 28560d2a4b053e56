/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records that the target's own threads make, in buffers of their own (lanes): one for each thread and kind of lane. A
 * thread writes its records without a lock, and hands them over at the probe site of this kind when its lane is half
 * full; the shim's thread hands over the rest ten times a second. A site has a family's probe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/shim.h"

#define LANES(X)                            \
	X(NVTX, sonde_cupti_nvtx)           \
	X(FUNCTIONS, sonde_cupti_functions) \
	X(TORCH, sonde_cupti_torch)
#define LANE_ENUM(up, site) LANE_##up,
enum lane_kind { LANES(LANE_ENUM) LANE_KINDS };

struct lane_thread;

/* The calling thread's own number, and its buffers; NULL: there are too many threads. */
struct lane_thread *lane__thread(void);
uint32_t lane_thread__tid(const struct lane_thread *t);
/* The time in which the thread has handed over records itself, ns. */
uint64_t lane_thread__flush_ns(const struct lane_thread *t, enum lane_kind kind);
/* Zeroed memory for the use of the lane's owner in this thread, which outlives no thread. */
void *lane_thread__room(struct lane_thread *t, size_t bytes, enum lane_kind kind);
/*
 * Begins a record with `body` bytes after its header, zeroed (start, end: CLOCK_MONOTONIC, ns, or 0, see struct
 * shim_record). lane__commit() completes it. NULL: the lane is full, which is counted; the thread is within such a call
 * already (a signal handler); or there are too many threads.
 */
void *lane__record(enum lane_kind kind, uint16_t record_kind, size_t body, uint64_t start, uint64_t end);
void lane__commit(enum lane_kind kind);
/* The same of this time or now, with a text after the body, at most SHIM_RECORD_MAX bytes. false: there was no room. */
bool lane__record_text_at(enum lane_kind kind, uint16_t record_kind, uint64_t time, const void *body, size_t size,
			  const char *text, size_t len);
bool lane__record_text(enum lane_kind kind, uint16_t record_kind, const void *body, size_t size, const char *text,
		       size_t len);
/* By the shim's thread: */

/* Hands over a record of this kind with the state of what the lanes are for, and all before it. */
void lane__report_state(enum lane_kind kind, uint16_t record_kind, enum gpu_shim_state state, const char *text);
/* Records how many records were lost, if any were, and why, as struct shim_lost. */
void lane__report_lost(enum lane_kind kind, uint16_t record_kind, uint64_t records, uint32_t reason);
/* What the lanes have from before the recording is discarded. */
void lanes__discard(enum lane_kind kind);
/* Hands over all records. Any thread may call it. */
void lanes__flush(enum lane_kind kind);
/* Hands over the records of threads that did not do so since the last call; to be called ten times a second. */
void lanes__collect(enum lane_kind kind);
/* Makes the buffers of threads that have ended free for others; to be called ten times a second. */
void lanes__reclaim(void);
/* Records lost since the last call: because lanes were full, and because there were too many threads. */
uint64_t lanes__lost(enum lane_kind kind, uint64_t *too_many);
/* Calls fn for each thread that has room for this kind. */
void lanes__each(enum lane_kind kind, void (*fn)(struct lane_thread *t, void *room, void *arg), void *arg);
/* In the child of a fork: only the calling thread has lanes, without records. */
void lanes__after_fork(void);
