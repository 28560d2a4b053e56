/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The suspended recording: records of targets are discarded, and the probes of families with .set_suspended are
 * detached. The trace has the time as a pause. SIGUSR2 and schedules suspend a recording.
 */
#pragma once

#include "core/event.h"

struct session;

struct suspension {
	bool is_suspended;
	u64 suspended_since; /* ns; if it is not: when it was resumed */
	u64 pause_since; /* begin of a pause whose end is not known yet, ns; 0: there is none */
	u64 paused_ns; /* sum of the pauses before it */
	u64 unmeasured; /* part of paused_ns in which --cost-limit had detached families sched and sample */
	bool schedule_ended;
};

/* Returns for how long --cost-limit has left out families sched and sample, without the pauses of the recording. */
u64 suspension__unmeasured(const struct session *s);
/* Returns whether the recording is suspended now. */
bool suspension__is_on(const struct suspension *u);
/* Returns whether it was suspended at a recent time: only the last change is known. */
bool suspension__was_on(const struct suspension *u, u64 time);
/* Should this record be discarded? */
bool suspension__discards(const struct session *s, const struct event *e, u32 size);
