/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts calls of the CUDA runtime and driver, for report cuda-api and the summary. */
#ifndef SONDE_REPORT_CUDA_API_H
#define SONDE_REPORT_CUDA_API_H

#include "model/nesting.h"
#include "model/stats.h"
#include "model/view.h"
#include "report/report.h"

struct order;

struct cuda_call_key {
	u32 pid, tid;
	u32 function; /* see cuda_api.c */
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

struct cuda_api {
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

/* Returns 0 or negative errno; call cuda_api__free in any case. */
int cuda_api__read(struct cuda_api *a, const struct query *args);
void cuda_api__free(struct cuda_api *a);
/* Adds the table of functions that nsys calls cuda_api_sum. */
struct table *cuda_api__table(struct cuda_api *a, struct report_output *out, const char *name);
/* Adds findings on what the calls cost, none without calls. `summary` is the table of functions. */
void cuda_api__add_findings(struct cuda_api *a, struct report_output *out, const struct table *summary);

#endif
