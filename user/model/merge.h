/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Merges several traces into one, on the time line of the first.
 *
 * Traces of one boot share CLOCK_MONOTONIC; others are aligned by CLOCK_REALTIME through the snapshots of both
 * clocks in each trace. The pids and tids of each further machine are raised by MERGE_TASKS, above any that Linux
 * gives; the numbers of its CPUs by the most CPUs that one of the machines has, unless there are more than 65,536 in
 * all. Texts, probes, objects, frames and code are numbered anew.
 */
#pragma once

#include "trace/reader.h"

#define MERGE_TASKS (1u << 22) /* PID_MAX_LIMIT, include/linux/threads.h */
#define MERGE_MAX   512 /* machines */

struct merge_part {
	struct trace_window time;
	struct trace_ids pids; /* n 0: all; events of no process are kept */
};

/*
 * Writes one trace anew to fd, an empty file. Of what lies outside of the part it keeps the events to which others
 * refer (EVENT_DESCRIBES), and states that the recording was paused outside of the time. 0 or negative errno with a
 * message in err.
 */
int merge__part(struct trace *t, const struct merge_part *part, int fd, char *err, size_t len);

/* Writes the merged trace to fd, an empty file. 0 or negative errno with a message in err. */
int merge__traces(struct trace *const *traces, const char *const *files, u32 n, int fd, char *err, size_t len);

/*
 * Machines are numbered from 0 by their boot id, in the order of the traces; a trace without a boot id is a
 * machine of its own.
 */
u32 merge__host(struct trace *const *traces, u32 i);
