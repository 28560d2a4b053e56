// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Waits for the GIL: a finding for each process, with the code that caused most of it, and what that code did. */
#include <stdio.h>
#include <string.h>

#include "findings/classify.h"
#include "findings/compute.h"
#include "findings/group.h"
#include "output/table.h"

/* A holder of less than this share of the waits is not named. */
#define KNOWN_PERCENT 10

/* The group is of a function, which several threads may run. Returns for how long others waited for this one. */
static u64 caused_by(const struct finding_input *in, const struct group *holder, struct thread_key thread)
{
	u64 ns = 0;

	for (u32 i = 0; i < holder->n; i++)
		if (thread_key__is_same(profile__key(in->profile, holder->cells[i])->caused_by, thread))
			ns += profile__cell(in->profile, holder->cells[i])->ns;
	return ns;
}

/*
 * A thread that releases the GIL when it blocks makes others wait for no longer than it runs and is runnable. Names the
 * longest wait in this line of a holder that made them wait for a third longer. Returns whether it did.
 */
static bool add_blocked(const struct finding_input *in, const struct group *holder, u32 stack, struct finding *f)
{
	struct thread_key thread = { f->counterpart.pid, f->counterpart.tid };
	const struct profile_thread *t = map__find(&in->profile->threads, &thread);
	u32 line = stacks__top_user(in->stacks, stack);
	const struct profile_key *longest = NULL;
	struct finding_code code = { 0 };
	u64 ns = 0;

	if (!t || !line || !holder->threads ||
	    4 * (t->run + t->runnable) * holder->threads > 3 * caused_by(in, holder, thread))
		return false;
	MAP_EACH_ENTRY(const struct profile_cell *cell, const struct profile_key *key, &in->profile->cells) {
		if (!thread_key__is_same(key->thread, thread) || key->state != ACTIVITY_BLOCKED || cell->ns <= ns ||
		    cell->kind == FINDING_GIL || key->reason >= ACTIVITY_CAUSE_BASE ||
		    stacks__top_user(in->stacks, key->stack) != line)
			continue;
		ns = cell->ns;
		longest = key;
	}
	if (!longest)
		return false;
	finding_code__fill(&code, in->stacks, longest->stack);
	snprintf(f->counterpart.activity, sizeof(f->counterpart.activity), "waited in %s%s%s and did not release it",
		 activity__name(in->activity, longest->reason), *code.native ? " in " : "", code.native);
	return true;
}

/* Adds what the holder's code did, and for how long it held the GIL. */
static void add_held(const struct finding_input *in, const struct computed *c, struct finding *f)
{
	size_t len;

	computed__activity(c, f->counterpart.activity, sizeof(f->counterpart.activity));
	if (!c->gil_ns)
		return;
	len = strlen(f->counterpart.activity);
	snprintf(f->counterpart.activity + len, sizeof(f->counterpart.activity) - len,
		 ", and held it for %.0f%% of the time", table__percent(c->gil_ns, query__duration(in->q)));
}

/*
 * The stack of a holder is read where it takes or releases the GIL. If the samples of the thread show that it held the
 * GIL for so many times longer in another function, that function is named.
 */
#define SAMPLED_FACTOR 4

/* Names the code that held the GIL longest by samples, in this thread or with tid 0 in the process. Returns whether. */
static bool add_sampled_holder(const struct finding_input *in, u32 tid, u64 known_ns, struct finding *f)
{
	struct computed c;

	computed__of_gil(&c, in, f->pid, tid);
	if (!c.gil_ns || c.gil_ns <= SAMPLED_FACTOR * known_ns ||
	    100 * c.gil_ns < KNOWN_PERCENT * query__duration(in->q))
		return false;
	finding_code__fill(&f->counterpart.code, in->stacks, c.stack);
	f->counterpart.pid = f->pid;
	f->counterpart.percent = table__percent(c.gil_ns, c.all_gil_ns);
	add_held(in, &c, f);
	f->confidence = FINDING_ATTRIBUTED;
	return true;
}

/* Adds the holder: its function and line, and the native function that it called. */
static void add_holder(const struct finding_input *in, const struct group *holder, struct finding *f)
{
	struct group_most stack = group__most(in, holder, GROUP_CAUSED_BY_STACK),
			  caused_by = group__most(in, holder, GROUP_CAUSED_BY);
	struct computed c;

	f->counterpart.pid = (u32)(caused_by.value >> 32);
	f->counterpart.tid = (u32)caused_by.value;
	finding_code__fill(&f->counterpart.code, in->stacks, (u32)stack.value);
	f->counterpart.percent = table__percent(holder->ns, f->lost_ns);
	if (add_blocked(in, holder, (u32)stack.value, f))
		return;
	computed__of(&c, in, f->pid, holder->code);
	if (!add_sampled_holder(in, f->counterpart.tid, c.gil_ns, f))
		add_held(in, &c, f);
}

/*
 * If the user's code has at least 1 / USERS_PART of the waiting, it is named as the waiter, and not the library code of
 * idle threads that wake up.
 */
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
	else
		add_sampled_holder(in, 0, 0, f);
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
