/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts calls of the CUDA runtime and driver, by function and thread. */
#pragma once

#include "model/nesting.h"
#include "model/stats.h"
#include "model/query.h"

struct order;

struct cuda_call_key {
	u32 pid, tid;
	u32 function; /* see cuda_calls.c */
	u32 unused;
};

struct cuda_return_key {
	struct cuda_call_key call;
	s64 ret;
};

struct cuda_group {
	struct stats time;
	u64 errors;
	u64 untimed; /* calls without a known duration, which are not in `time` */
	u64 inner_ns; /* the part of `time` that lies within other calls */
};

struct cuda_calls {
	struct stats_pool pool;
	struct map by_thread; /* struct cuda_call_key -> struct cuda_group */
	struct map by_name; /* probe -> struct cuda_group */
	struct map returns; /* struct cuda_return_key -> u64 */
	struct map functions; /* probe or kind -> the number shared by all of its name */
	const struct schema *schema;
	struct names *names;
	u64 total; /* ns of all calls that are not within others */
	u64 calls, untimed, open,
		inner; /* all calls; of these, those without a known duration; of these, those still open */
	struct order *order; /* while it reads */
	struct nesting nesting;
	struct common_fields *fields; /* of the schema's events by their number */
	struct cuda_call_key stuck; /* the longest call that had not returned at the end */
	u64 longest_open;
};

/* Returns 0 or negative errno; call cuda_calls__free in any case. */
int cuda_calls__read(struct cuda_calls *a, const struct query *args);
void cuda_calls__free(struct cuda_calls *a);
/* The name of a function by its number in the maps; "?": not known */
const char *cuda_calls__function_name(const struct cuda_calls *a, u32 function);
/* Is it the result of a call that failed? */
bool cuda_calls__is_error(s64 ret);
/* Returns "cudaErrorMemoryAllocation" or "CUDA_ERROR_OUT_OF_MEMORY", by its function; NULL: not known */
const char *cuda_calls__error_name(const char *function, s64 ret);
/* Returns the error that one thread got most often, and sets *errors to the number of all; NULL: there was none. */
const struct cuda_return_key *cuda_calls__worst_error(const struct cuda_calls *a, u64 *errors);
