// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/inject_budget.h"

#include <stdlib.h>

#include "util/array.h"

#define SECOND_NS 1000000000ULL

static struct inject_budget_user *find(const struct inject_budget *b, u32 uid)
{
	for (u32 i = 0; i < b->n; i++)
		if (b->users[i].uid == uid)
			return &b->users[i];
	return NULL;
}

enum inject_turn inject_budget__turn(const struct inject_budget *b, u32 uid)
{
	const struct inject_budget_user *u = find(b, uid);

	if (u && (u->failures >= INJECT_BUDGET_FAILURES || u->slow_ns >= INJECT_BUDGET_USER_S * SECOND_NS))
		return INJECT_TURN_USER_SPENT;
	if (b->slow_ns >= INJECT_BUDGET_ALL_S * SECOND_NS)
		return INJECT_TURN_ALL_SPENT;
	return u && u->failures ? INJECT_TURN_SHORT : INJECT_TURN_FULL;
}

/* The list stays short, since each user in it has used a second or more of the budget of all users. */
void inject_budget__add(struct inject_budget *b, u32 uid, u64 ns, bool failed)
{
	struct inject_budget_user *u = find(b, uid);

	if (ns < SECOND_NS)
		return;
	b->slow_ns += ns;
	if (!u && array__push(b->users, b->n, (struct inject_budget_user){ .uid = uid }))
		u = &b->users[b->n - 1];
	if (!u)
		return;
	u->slow_ns += ns;
	u->failures += failed;
}

void inject_budget__free(struct inject_budget *b)
{
	free(b->users);
	*b = (struct inject_budget){};
}
