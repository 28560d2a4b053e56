/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads GPU work for reports cuda-kern, cuda-kern-launch, cuda-mem-time, cuda-mem-size and cuda-trace. */
#pragma once

#include "model/gpu.h"
#include "model/stacks.h"
#include "model/stats.h"
#include "report/report.h"

/* The columns of a time or a size in Nsight's reports; `unit` ends the keys, `of` is part of the headings. */
#define CUDA_STATS(unit, of, show)                                                                       \
	{ "avg_" unit, "Avg" of, VALUE_DOUBLE, show }, { "median_" unit, "Med" of, VALUE_DOUBLE, show }, \
		{ "min_" unit, "Min" of, VALUE_U64, show }, { "max_" unit, "Max" of, VALUE_U64, show },  \
	{                                                                                                \
		"stddev_" unit, "StdDev" of, VALUE_DOUBLE, show                                          \
	}
#define CUDA_STATS_VALUES(s) \
	V_DBL((s)->mean), V_DBL(stats__median(s)), V_U64((s)->min), V_U64((s)->max), V_DBL(stats__stddev(s))

struct cuda_work {
	const struct query *args;
	struct gpu_model *model;
	struct stacks *stacks;
	struct map places; /* function and line -> first frame seen there */
	struct stats_pool pool;
	struct gpu_coverage coverage;
	int (*fn)(const struct gpu_work *w, void *arg);
	void *arg;
};

/* Reads the selected work. Returns 0 or negative errno, also that of fn; call cuda_work__free in any case. */
int cuda_work__read(struct cuda_work *c, const struct query *args, int (*fn)(const struct gpu_work *w, void *arg),
		    void *arg);
void cuda_work__free(struct cuda_work *c);
/* Are its start and end on the device known? Sums omit work that had not ended when the trace did. */
bool cuda_work__is_whole(const struct gpu_work *w);
/* Returns the demangled name, or a text for an unknown name. */
const char *cuda_work__name(const struct cuda_work *c, const char *mangled);
/* The same without types, parameters and namespaces, for sentences */
const char *cuda_work__short_name(const struct cuda_work *c, const char *mangled);
/* Returns the innermost frame of the launch in the user's code, one id for each line; 0: not known. */
u32 cuda_work__line(struct cuda_work *c, const struct gpu_launch *l);
/* Adds notes on what the figures omit and how exact they are. nothing: the finding if there is no work, else NULL. */
void cuda_work__add_notes(const struct cuda_work *c, struct report_output *out, const char *nothing);
/* Adds a note if calls were made while the shim was off in their process. */
void cuda_work__add_unwatched_note(const struct gpu_coverage *t, struct report_output *out);
