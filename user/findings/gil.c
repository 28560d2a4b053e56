// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Waits for the GIL: a finding for each process, with the code that held it for most of the time and what it did. */
#include <stdio.h>
#include <string.h>

#include "findings/classify.h"
#include "findings/compute.h"
#include "findings/group.h"
#include "output/table.h"

/* A holder of less than this share of the waits is not named. */
#define KNOWN_PERCENT 10

/* Adds the holder: its function and line, and the native function that it called. */
static void add_holder(const struct finding_input *in, const struct group *holder, struct finding *f)
{
	struct group_most stack = group__most(in, holder, GROUP_BY_STACK), by = group__most(in, holder, GROUP_BY);
	struct computed c;
	size_t len;

	f->by.pid = (u32)(by.value >> 32);
	f->by.tid = (u32)by.value;
	finding_code__fill(&f->by.code, in->stacks, (u32)stack.value);
	f->by.percent = table__percent(holder->ns, f->lost_ns);
	computed__of(&c, in, f->pid, holder->code);
	computed__activity(&c, f->by.activity, sizeof(f->by.activity));
	if (!c.gil_ns)
		return;
	len = strlen(f->by.activity);
	snprintf(f->by.activity + len, sizeof(f->by.activity) - len, ", and held it for %.0f%% of the time",
		 table__percent(c.gil_ns, query__duration(in->q)));
}

/* Idle threads that wake up wait for the GIL, too: this part of the waits in the user's code says more than those. */
#define USERS_PART 5

static void add_users_code(const struct finding_input *in, const struct group *waiters, struct finding *f)
{
	struct map stacks;
	u64 users = 0, most = 0;
	u32 best = 0;

	map__init(&stacks, sizeof(u32), sizeof(u64));
	for (u32 i = 0; i < waiters->n; i++) {
		u32 stack = profile__key(in->profile, waiters->cells[i])->stack;
		u64 ns = profile__cell(in->profile, waiters->cells[i])->ns, *sum;

		sum = stack_parts__of(in->stacks, stack).user ? map__get(&stacks, &stack) : NULL;
		if (!sum)
			continue;
		users += ns;
		*sum += ns;
		if (*sum <= most)
			continue;
		most = *sum;
		best = stack;
	}
	map__free(&stacks);
	if (best && USERS_PART * users >= f->lost_ns)
		finding_code__fill(&f->code, in->stacks, best);
}

static int complete(const struct finding_input *in, const struct group *waiters, const struct groups *holders,
		    struct finding *f)
{
	const struct group *best = NULL;

	snprintf(f->report, sizeof(f->report), "gil");
	*f->call = '\0';
	add_users_code(in, waiters, f);
	for (u32 i = 0; i < holders->n; i++)
		if (holders->list[i].pid == f->pid && holders->list[i].code &&
		    (!best || holders->list[i].ns > best->ns))
			best = &holders->list[i];
	if (best && 100 * best->ns >= KNOWN_PERCENT * f->lost_ns)
		add_holder(in, best, f);
	return 0;
}

static int find(const struct finding_input *in, struct findings *out)
{
	struct groups waiters, holders;
	struct finding *f;
	int err = groups__make(&waiters, in, FINDING_BIT(FINDING_GIL), GROUPS_PROCESS);
	int err2 = groups__make(&holders, in, FINDING_BIT(FINDING_GIL), GROUPS_HOLDER);

	err = err ? err : err2;
	for (u32 i = 0; !err && i < waiters.n; i++) {
		f = group__add_finding(in, &waiters.list[i], FINDING_GIL, out);
		if (f)
			err = complete(in, &waiters.list[i], &holders, f);
	}
	groups__free(&waiters);
	groups__free(&holders);
	return err;
}

FINDINGS(gil) = { .name = "gil", .find = find };
