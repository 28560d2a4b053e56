/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What every output states about its trace: where and when it was made, whether it is whole, and what is missing. */
#pragma once

#include "model/losses.h"
#include "trace/reader.h"

/* A BPF program that the kernel refused. */
struct refused {
	const char *family_name; /* NULL: not in the schema */
	const char *program, *why;
	const char *lacks; /* what the trace lacks without it */
	bool is_whole_family; /* the family recorded nothing */
};

struct joint_pause;

/* ns of the traced time in which sched and sample did not measure */
struct unmeasured_sum {
	u64 of_any; /* in at least one of the merged traces */
	u64 mean; /* the mean of the merged traces that were live */
};

struct trace_facts {
	const char *file; /* as printed */
	const char *path; /* path of the file; NULL: several files were merged */
	const struct trace_head *head;
	const struct trace_summary *summary;
	u64 start; /* CLOCK_MONOTONIC ns that --time counts from */
	/*
	 * The traced time, CLOCK_MONOTONIC ns: when all was attached, when detaching began; the first and last of
	 * several traces
	 */
	u64 live, stop;
	struct trace_window *
		windows; /* the traced time without pauses and what lies between several traces; by time, one or more */
	u32 n_windows;
	u64 *before; /* of each window: ns in those before it */
	struct trace_window *unpaused; /* of trace_facts__leave_out_pauses */
	u64 paused_ns; /* the sum of the pauses */
	/* when sched and sample did not measure, to limit their cost (record --cost-limit); by time, disjoint */
	struct joint_pause *unmeasured;
	struct unmeasured_sum *unmeasured_before; /* of each of these times: the sums of those before it */
	u32 n_unmeasured;
	bool unmeasured_joined; /* there were too many: what was measured between the last ones counts as unmeasured */
	bool pauses_joined; /* there were too many: what was recorded between the last ones counts as paused */
	bool begins_paused, ends_paused; /* a pause lies before live, after stop */
	u64 from, to; /* the selected time; to 0: no limit */
	struct trace_ids pids; /* selected processes, as given; n 0: all */
	u32 tid; /* 0: all */
	u64 n_ranges; /* capture ranges that ended */
	s64 end_reason; /* enum end_reason; 0: the recording was cut off */
	u64 damaged; /* chunks that could not be read */
	struct loss *losses;
	u32 n_losses;
	struct refused *refused;
	u32 n_refused;
	const char **warnings; /* that the recordings printed, at most WARNINGS_MAX */
	u32 n_warnings;
};

/*
 * Reads losses in [from, to), refused programs, warnings and the end's reason. file and t must outlive f. 0 or negative
 * errno.
 */
int trace_facts__load(struct trace_facts *f, struct trace *t, const char *file, u64 from, u64 to);
void trace_facts__free(struct trace_facts *f);
/* ns of [from, to) that lie in the traced time */
u64 trace_facts__inside(const struct trace_facts *f, u64 from, u64 to);
/*
 * ns of [from, to) that lie in the traced time and in which families sched and sample did not measure. Of merged
 * traces, of which each measured at other times: the mean
 */
u64 trace_facts__unmeasured(const struct trace_facts *f, u64 from, u64 to);
/* Returns whether one of the merged traces did not measure in most of [from, to). */
bool trace_facts__is_unmeasured(const struct trace_facts *f, u64 from, u64 to);
/*
 * Moves *window, the number of a window, on to the one of `time`, for readers of events in order of time. Returns
 * whether it moved.
 */
bool trace_facts__enter_window(const struct trace_facts *f, u32 *window, u64 time);
/* Lets the first window begin and the last one end with a selected time. to 0: no limit */
void trace_facts__widen(struct trace_facts *f, u64 from, u64 to);
/*
 * Makes readings by trace_filter.in_windows leave out what was recorded in pauses, and nothing else. f must outlive
 * them. 0 or -ENOMEM
 */
int trace_facts__leave_out_pauses(struct trace_facts *f, struct trace *t);
/* ns of the traced time */
u64 trace_facts__traced(const struct trace_facts *f);
/* The time of a CLOCK_MONOTONIC moment on CLOCK_REALTIME. */
u64 trace_facts__realtime(const struct trace_facts *f, u64 monotonic);
/* For texts about losses. */
struct loss_times trace_facts__times(const struct trace_facts *f);
/* Text that says why the recording ended. */
const char *end__reason(s64 reason);
