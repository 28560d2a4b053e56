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
	bool all; /* the family recorded nothing */
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
	bool pauses_joined; /* there were too many: what was recorded between the last ones counts as paused */
	bool begins_paused, ends_paused; /* a pause lies before live, after stop */
	u64 from, to; /* the selected time; to 0: no limit */
	struct trace_ids pids; /* selected processes, as given; n 0: all */
	u32 tid; /* 0: all */
	s64 end_reason; /* enum end_reason; 0: the recording was cut off */
	u64 damaged; /* chunks that could not be read */
	struct loss *losses;
	u32 n_losses;
	struct refused *refused;
	u32 n_refused;
};

/* Reads losses in [from, to), refused programs and the end's reason. file and t must outlive f. 0 or negative errno. */
int trace_facts__load(struct trace_facts *f, struct trace *t, const char *file, u64 from, u64 to);
void trace_facts__free(struct trace_facts *f);
/* ns of [from, to) that lie in the traced time */
u64 trace_facts__inside(const struct trace_facts *f, u64 from, u64 to);
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
