/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts NCCL calls by function and communicator, and lists collectives and transfers between two ranks. */
#pragma once

#include "model/stats.h"
#include "model/query.h"

struct nccl_handle {
	u64 comm;
	u32 pid;
	u32 unused;
};

/* One rank's communicator. Several may have had the same address, one after the other; each has its own sums. */
struct nccl_rank {
	u64 since; /* when it was first described; 0: never */
	u64 hash;
	s32 rank, size, device; /* size 0: not known */
	bool is_new; /* a recorded call created it, so all its collectives were recorded */
	u64 calls, bytes, errors, open;
	u64 ns; /* duration of its calls */
};

struct nccl_handles {
	struct nccl_rank *list; /* sorted by `since` */
	u32 n;
};

struct nccl_function {
	struct stats time;
	u64 bytes;
	u64 errors;
	u64 open;
	u64 untimed; /* calls without a known duration, which are not in `time` */
};

struct nccl_failure_key {
	u32 pid, tid;
	u32 function;
	s32 ret;
};

/* A call that had not returned at the end. */
struct nccl_open {
	u32 pid, tid;
	u32 function;
	s32 rank, size; /* size 0: not known */
	u64 comm;
	u64 ns;
};

/* A call of a collective or of a transfer between two ranks that did not fail */
struct nccl_op {
	u64 start, end; /* of the call */
	u64 bytes; /* as the event has them: docs/nccl.md */
	u64 comm;
	const struct nccl_rank *rank;
	u32 pid, tid, function;
	bool is_collective, is_open;
};

/* A call of ncclGroupStart or ncclGroupEnd */
struct nccl_mark {
	u64 start, end;
	u32 pid, tid;
	bool is_end;
};

struct nccl_calls {
	struct stats_pool pool;
	struct map probes; /* probe, or 0x10000 | event's id -> function: one number for all with the same name */
	struct map functions; /* function -> struct nccl_function */
	struct map comms; /* struct nccl_handle -> struct nccl_handles */
	struct map failures; /* struct nccl_failure_key -> u64 */
	struct nccl_open *open;
	struct nccl_op *ops; /* by thread and start */
	struct nccl_mark *marks; /* by thread and start */
	const struct schema *schema;
	struct names *names;
	u64 calls, total, errors; /* total: ns */
	u32 n_open, n_ops, n_marks;
};

/* Returns 0 or negative errno; call nccl_calls__free in any case. */
int nccl_calls__read(struct nccl_calls *a, const struct query *args);
void nccl_calls__free(struct nccl_calls *a);
/* The name of a function by its number in the maps; "?": not known */
const char *nccl_calls__function_name(const struct nccl_calls *a, u32 function);
/* Names an ncclResult_t; NULL: not known */
const char *nccl_calls__result_name(s32 ret);
