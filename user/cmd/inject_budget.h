/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long `record --inject` waits for processes that delay it, each user's apart: a process that holds its loader's
 * lock takes the whole limit of a call, and a user may have hundreds of them.
 */
#ifndef SONDE_CMD_INJECT_BUDGET_H
#define SONDE_CMD_INJECT_BUDGET_H

#include "core/types.h"

#define INJECT_BUDGET_FAILURES 3 /* slow failures, after which a user's other processes are left out */
#define INJECT_BUDGET_USER_S   30 /* all slow processes of a user */
#define INJECT_BUDGET_ALL_S    120 /* of all users */

/* One user whose processes delayed the beginning. */
struct inject_budget_user {
	u32 uid;
	u32 failures;
	u64 slow_ns;
};

struct inject_budget {
	struct inject_budget_user *users;
	u32 n;
	u64 slow_ns; /* of all users */
};

enum inject_turn {
	INJECT_TURN_FULL,
	INJECT_TURN_SHORT, /* with the short limit: a process of this user was slow and failed */
	INJECT_TURN_USER_SPENT, /* left out: its user's processes took too long */
	INJECT_TURN_ALL_SPENT, /* left out: all users' processes did */
};

/* What the next process of this user gets. */
enum inject_turn inject_budget__turn(const struct inject_budget *b, u32 uid);
/* Counts a process that took ns; one of less than a second costs nothing. */
void inject_budget__add(struct inject_budget *b, u32 uid, u64 ns, bool failed);
void inject_budget__free(struct inject_budget *b);

#endif
