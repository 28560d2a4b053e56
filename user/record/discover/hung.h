/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files and processes about which the kernel does not answer in time. */
#pragma once

#include "core/types.h"

#include <stdbool.h>

struct session;
struct object;

#define HUNG_MAX 16

struct hung {
	u32 pids[HUNG_MAX]; /* the last processes that did not answer, which are not asked about again */
	u32 n;
	bool stuck_noted; /* it was reported that the attacher does not answer */
	struct hung_account {
		u32 uid, n; /* requests that got no answer */
		u64 last; /* ns */
	} accounts[HUNG_MAX]; /* the last ones */
	u32 n_accounts;
};

/*
 * Returns whether a file of the account, or a debug file for one, may be requested from the opener, whose time limit it
 * sets.
 */
bool hung__may_ask(struct session *s, u32 uid, bool for_debug_file);
/* Notes that such a request got no answer. */
void hung__note(struct session *s, u32 uid);
/* Reports that the object's file system does not answer. */
void object__refuse_hung(struct session *s, const struct object *o, u32 uid);
/* Returns whether the process, or its account, is not to be asked about; sets the opener's time limit. */
bool process__is_hung(struct session *s, u32 pid);
/* Notes that the kernel did not answer about the process in time, if this is the error. Returns the error. */
int process__note_answer(struct session *s, u32 pid, int err);
/* Returns whether there are such processes. */
bool hung__are_processes(const struct hung *h);
/* Removes processes that have ended: their pids may be reused. */
void hung__forget_ended(struct hung *h);
/* Reports once that the attacher does not answer. */
void attacher__note_stuck(struct session *s);
