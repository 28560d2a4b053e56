/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The times in which some process is recorded, and the pauses between them: of --schedule, whose active phases these
 * are, and of --capture-range. BPF programs decide when such a time begins, and the worker learns it from their
 * records, which may arrive in any order of the processes. So a pause is written once no record about it can follow.
 */
#pragma once

#include "core/types.h"

struct session;

struct active_time {
	u64 from, to; /* ns */
};

struct active_times {
	struct active_time *list; /* times that have ended; the pauses around them are not written yet */
	u32 n;
	u64 drained, ticked; /* session__drained() and the time at the last tick */
	u64 read_until; /* ns: each record from before this time was handled */
};

/* The recording begins with a pause, at `now`. */
void active__start(struct session *s, struct active_times *t, u64 now);
/* Without memory the time counts as paused, and reports leave out what it has. */
void active__add(struct active_times *t, u64 from, u64 to);
/* Call it at each tick. Returns the time before which all is known. *is_late: that is longer ago than usual. */
u64 active__tick(struct session *s, struct active_times *t, u64 now, bool *is_late);
/*
 * Writes the pauses between the times that ended by `until`. open_since: when the first time began that has not ended.
 */
void active__write_pauses(struct session *s, struct active_times *t, u64 until, u64 open_since);
/* Writes the open pause up to `until`, or to the next time, so that a trace that is cut off has it. */
void active__write_open_pause(struct session *s, const struct active_times *t, u64 until);
void active__free(struct active_times *t);
