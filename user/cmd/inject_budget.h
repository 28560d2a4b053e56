/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Limits how long slow processes may delay `record --inject`, for each user and in total: a process that holds its
 * loader's lock uses up the whole time limit of a call, and a user may have hundreds of such processes.
 */
#pragma once

#include "core/types.h"

#define INJECT_BUDGET_FAILURES 3 /* slow failures, after which the user's other processes are skipped */
#define INJECT_BUDGET_USER_S   30 /* seconds that slow processes of a user may take */
#define INJECT_BUDGET_ALL_S    120 /* of all users together */

/* A user whose processes were slow. */
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
	INJECT_TURN_SHORT, /* with the short time limit: a process of this user was slow and failed */
	INJECT_TURN_USER_SPENT, /* skipped: the user's processes took too long */
	INJECT_TURN_ALL_SPENT, /* skipped: all users' processes together took too long */
};

/* Returns how to treat the user's next process. */
enum inject_turn inject_budget__turn(const struct inject_budget *b, u32 uid);
/* Counts a process that took ns; one of less than a second is not counted. */
void inject_budget__add(struct inject_budget *b, u32 uid, u64 ns, bool failed);
void inject_budget__free(struct inject_budget *b);
