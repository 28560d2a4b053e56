/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which steps of a training loop are recorded (`sonde record --schedule`), with the meaning of
 * torch.profiler.schedule().
 */
#pragma once

#include "types.h"

struct step_schedule {
	u32 skip_first; /* steps before the first cycle */
	u32 wait, warmup, active; /* steps of a cycle; active is not 0 */
	u32 repeat; /* cycles; 0: until the recording ends */
};

enum step_phase {
	STEP_IDLE = 1, /* no probe but those that find the ends of steps is attached */
	STEP_WARMUP, /* the other probes are being attached, nothing is recorded */
	STEP_ACTIVE,
	STEP_DONE, /* all cycles are over */
};

static inline u64 step_schedule__cycle_steps(const volatile struct step_schedule *s)
{
	return (u64)s->wait + s->warmup + s->active;
}

/* Returns the cycle of a step, from 1 on; 0: it is before the first one. Steps are counted from 0. */
static inline u64 step_schedule__cycle(const volatile struct step_schedule *s, u64 step)
{
	return step < s->skip_first ? 0 : (step - s->skip_first) / step_schedule__cycle_steps(s) + 1;
}

static inline u32 step_schedule__own_phase(const volatile struct step_schedule *s, u64 step)
{
	u64 cycle = step_schedule__cycle(s, step), at;

	if (!cycle)
		return STEP_IDLE;
	if (s->repeat && cycle > s->repeat)
		return STEP_DONE;
	at = step - s->skip_first - (cycle - 1) * step_schedule__cycle_steps(s);
	return at < s->wait ? STEP_IDLE : at < (u64)s->wait + s->warmup ? STEP_WARMUP : STEP_ACTIVE;
}

/*
 * Returns the phase of a step. Without warmup, the last step before the active ones counts as warmup, because probes
 * must be attached before an active step begins.
 */
static inline u32 step_schedule__phase(const volatile struct step_schedule *s, u64 step)
{
	u32 phase = step_schedule__own_phase(s, step);

	return phase == STEP_IDLE && step_schedule__own_phase(s, step + 1) == STEP_ACTIVE ? STEP_WARMUP : phase;
}
