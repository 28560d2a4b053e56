/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Collective operations, matched between the ranks of a communicator: who was last to reach each, how long the others
 * waited for it, and which rank never came.
 *
 * They are read from two sources. Of NCCL (collectives_read.c), ranks of one communicator have the same hash, and the
 * n-th call of one is the n-th call of the others. Of PyTorch's c10d over gloo, an operation is what a thread of gloo
 * executes, or without such events a wait for one; which processes belong together is for the caller to decide. There
 * records may be lost, so operations are matched by their times, too: no rank leaves one before the last rank has come.
 */
#pragma once

#include "model/query.h"

struct collective {
	u64 call; /* when the host called it; of gloo: as start */
	u64 start, end; /* ns in which it was executed: by the device, by a thread of gloo, else the call's */
	s64 number; /* the same in all ranks; -1: not matched */
	u64 bytes;
	const char *function; /* NULL: not known */
	bool has_device; /* a kernel executed it */
	bool is_open; /* it had not ended when the trace did */
};

/* One process in one communicator */
struct collective_rank {
	u32 pid, tid; /* tid: the thread that called last */
	bool is_nccl;
	u64 hash; /* of NCCL's communicator; 0: not known */
	u64 comm;
	s32 rank, size; /* in NCCL's communicator; size 0: not known */
	bool is_new; /* all of its operations were recorded */
	bool has_groups; /* its operations are those of several process groups of gloo, matched by their times alone */
	u32 job; /* for the caller */
	struct collective *list; /* by call */
	u32 n;
	s64 clock; /* ns to add to its times, as another machine's clock differs */
	u64 compared; /* operations that at least one other rank had, too */
	u64 last; /* those in which it was the last to arrive */
	u64 waited_ns; /* for other ranks */
	u64 delayed_ns; /* for how long all others waited for it */
	double delayed_squares; /* ns^2: the sum of the squares of these delays */
	u64 longest_ns; /* the longest of them, without that of the communicator's first operation, for which ranks start */
	s64 longest_at; /* the number of that operation */
	u64 counted_to, delayed_to; /* until when its waits and delays are in these sums */
};

struct collective_ranks {
	struct collective_rank *list;
	u32 n;
};

/* The comparison of the ranks of a communicator */
struct communicator {
	struct collective_rank *ranks;
	u32 n;
	bool has_device; /* arrivals are those of kernels; else of calls, or of threads of gloo */
	u64 compared; /* operations in which two ranks or more were compared */
	u64 skew_ns; /* sum over these: from the first arrival to the last */
	s64 stuck; /* the operation that had not ended when the trace did, as ranks are absent from it; -1: none */
	u32 absent; /* ranks that had not come to it; 0: they were not recorded */
	u64 stuck_ns; /* how long all that came have waited */
	s64 mismatch; /* the first operation for which ranks called different functions or passed different sizes; -1 */
};

/* Reads the operations of each process. 0 or negative errno; collective_ranks__free in any case. */
int collective_ranks__read(struct collective_ranks *c, const struct query *q);
void collective_ranks__free(struct collective_ranks *c);
/*
 * Compares n ranks of one communicator. `names` states which machine each ran on; `end` is that of the trace. 0 or
 * -ENOMEM.
 */
int communicator__compare(struct communicator *c, struct collective_rank *ranks, u32 n, const struct names *names,
			  u64 end);
/* Returns the rank's operation with this number; NULL: it has none. */
const struct collective *collective_rank__operation(const struct collective_rank *r, s64 number);
/* Writes "collective 13 (ncclAllReduce, 4.00 MiB)", as one of the ranks called it. */
void communicator__name_operation(const struct communicator *c, s64 number, char *buf, size_t size);
/* Had the rank not come to this operation? */
bool collective_rank__is_absent(const struct collective_rank *r, s64 number);
/*
 * Returns how long the rank's kernels ran beyond the fastest one for the same function and size, those that took at
 * least twice as long: they waited for other ranks.
 */
u64 collective_rank__excess(const struct collective_rank *r);
