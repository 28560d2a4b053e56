/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* --schedule and --step, for torch.c. */
#pragma once

#include "record/family.h"
#include "torch.h"

struct torch_process {
	u32 pid;
	u32 phase; /* enum step_phase */
	u64 step; /* the first step of this phase */
	u64 active_since; /* ns; 0: it is not active */
};

struct torch_schedule {
	struct torch_process *processes; /* processes that have ended a step */
	u32 n;
	struct active_times active; /* active phases */
	u64 postponed; /* the most steps by which a process is late */
	bool is_started, has_begun; /* is_started: there has been a tick; has_begun: a process has ended a step */
	bool has_done; /* a process has ended its last cycle */
};

int torch_schedule__configure(struct session *s);
void torch_schedule__set_suspended(struct session *s, bool suspend);
void torch_schedule__event(struct session *s, struct torch_schedule *t, const struct torch_phase *e);
void torch_schedule__tick(struct session *s, struct torch_schedule *t, u64 now);
/* Call it before the recording stops. */
void torch_schedule__finish(struct session *s, struct torch_schedule *t);
void torch_schedule__free(struct torch_schedule *t);
