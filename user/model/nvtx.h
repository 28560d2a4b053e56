/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ranges of NVTX: what the program was in, at each moment of each thread. */
#pragma once

#include "model/query.h"
#include "model/waits.h"

/* The text of a range's or a domain's name; "domain:name" as Nsight prints it. */
#define NVTX_LABEL 256

struct nvtx_label {
	u64 domain, name; /* ids of texts: equal texts have equal ids in all processes */
};

struct nvtx_range {
	struct thread_key thread; /* that began it */
	u64 start, end; /* ns, CLOCK_MONOTONIC */
	u32 label; /* number for nvtx__label() */
	bool is_started; /* by start and end, not by push and pop */
	bool is_open; /* it had not ended when the recording did */
	u32 level; /* of a pushed range, in its domain */
	u32 around; /* index of the range of this thread that was the innermost one when it began; NVTX_OUTSIDE: none */
};

struct nvtx_thread {
	struct thread_key thread;
	struct nvtx_range *ranges; /* by start, outer ones first */
	u32 n;
	struct nvtx_part *parts; /* by time, which tile the thread's time */
	u32 n_parts;
};

/* From this time on the thread was in the range with this index, the innermost one; NVTX_OUTSIDE: in none. */
struct nvtx_part {
	u64 from;
	u32 range;
};
#define NVTX_OUTSIDE 0xffffffffu

struct nvtx {
	const struct query *q;
	struct map labels; /* struct nvtx_label -> its number */
	struct map threads; /* struct thread_key -> struct nvtx_thread */
	u64 n, left_out; /* ranges; those beyond NVTX_RANGES_MAX */
};

#define NVTX_RANGES_MAX 20000000u

/* Reads all ranges of the selected processes that overlap the selected time. 0 or negative errno; free in any case. */
int nvtx__read(struct nvtx *n, const struct query *q);
void nvtx__free(struct nvtx *n);
/* Writes "domain:name", or the name in the default domain. Returns buf. */
const char *nvtx__label(const struct nvtx *n, u32 label, char *buf, size_t size);
#define NVTX_LABEL_OF(n, label) nvtx__label(n, label, (char[NVTX_LABEL]){ 0 }, NVTX_LABEL)
/* NULL: the thread has none. */
const struct nvtx_thread *nvtx__thread(const struct nvtx *n, struct thread_key thread);
/* Returns the index of the innermost range of the thread at a time; NVTX_OUTSIDE: in none. */
u32 nvtx_thread__at(const struct nvtx_thread *t, u64 time);
/* Calls fn for each part of [from, to) with the innermost range in it. t may be NULL. */
int nvtx_thread__split(const struct nvtx_thread *t, u64 from, u64 to,
		       int (*fn)(const struct nvtx_range *r, u64 from, u64 to, void *arg), void *arg);

/*
 * The number in field `payload` or `value` of an event of NVTX, whose kind another field states. Returns false if f is
 * another field, or there is no number. *is_double: it is *d, else *n.
 */
bool nvtx__value(const struct view *v, const struct schema_field *f, bool *is_double, double *d, s64 *n);
/* The same for the bits of a kind, enum nvtx_payload_kind. */
bool nvtx__number(u32 kind, u64 bits, bool *is_double, double *d, s64 *n);
