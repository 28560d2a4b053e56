/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The processes with the shim (core/shim.h), for the families whose records it makes: their requests are links of
 * control programs. family.h has the functions for families.
 */
#pragma once

#include "core/types.h"

struct session;
struct shim_user;

/* A process with the shim, as one family sees it. */
struct shim_target {
	const struct shim_user *user;
	u32 pid;
	u64 dev, ino; /* the shim's file that the links belong to; after an exec the process may map another one */
	u32 links; /* the number of its links; 0: it has none */
	bool active; /* it will send more records when it stops */
	bool is_early; /* it was requested before the traced time began */
	bool has_answered; /* it has reported a state */
	bool is_over; /* it has ended; records that it sent may still be unread */
	u64 ended_drained; /* session__drained() when its end was noticed */
};

struct shims {
	struct shim_target *list;
	u32 n;
	u32 last_links; /* the number assigned last */
	u64 next_check; /* ns: time of the next check for processes that have ended */
	bool dropped; /* the control links were closed */
	bool warned_text, warned_link;
	bool has_slot;
	int slot; /* the number of the slot that this tracer uses in each shim */
	int slot_fd; /* holds the lock that reserves the slot */
};

/*
 * Waits until the shims of the processes that were there at the start have begun to record. A shim that is older than
 * attach/semaphores.c may need a second; then what it did not record is counted as a gap.
 */
void shims__await(struct session *s);
void shims__free(struct shims *s);
