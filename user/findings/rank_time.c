// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/rank_time.h"

#include <errno.h>

#include "findings/rules.h"

/* What a stack shows */
enum { MARK_SEEN = 1, MARK_RANKS = 2, MARK_PYTHON = 4 };

static int find_functions(struct rank_time *t)
{
	struct map known; /* u32 stack_frame.code -> u8 */
	int err = 0;

	map__init(&known, sizeof(u32), sizeof(u8));
	for (u32 i = 0; !err && i < stacks__count(t->stacks); i++) {
		const struct stack_frame *f = stacks__frame(t->stacks, stacks__id(t->stacks, i));
		const struct rule *rule;
		u8 *seen = f->code ? map__get(&known, &f->code) : NULL;

		if (!f->code || (seen && *seen))
			continue;
		if (!seen) {
			err = -ENOMEM;
			break;
		}
		*seen = 1;
		rule = rule__of(f);
		if (rule && rule->kind == FINDING_RANKS && !map__get(&t->functions, &f->code))
			err = -ENOMEM;
	}
	map__free(&known);
	return err;
}

int rank_time__init(struct rank_time *t, const struct query *q, const struct stacks *stacks)
{
	struct trace_window w = query__window(q);

	t->stacks = stacks;
	t->from = w.from;
	t->width = (w.to - w.from) / RANK_PARTS + 1;
	map__init(&t->functions, sizeof(u32), sizeof(u8));
	map__init(&t->marks, sizeof(u32), sizeof(u8));
	map__init(&t->processes, sizeof(u32), sizeof(u8));
	map__init(&t->threads, sizeof(struct thread_key), sizeof(struct rank_waits));
	return find_functions(t);
}

void rank_time__free(struct rank_time *t)
{
	MAPS_FREE(&t->functions, &t->marks, &t->processes, &t->threads);
}

/* Returns the marks of a stack; 0: no memory. */
static u8 marks_of(struct rank_time *t, u32 stack)
{
	u8 *known = map__get(&t->marks, &stack);
	const struct stack_frame *f;

	if (!known || *known)
		return known ? *known : 0;
	*known = MARK_SEEN;
	for (u32 at = stack; (f = stacks__frame(t->stacks, at)) != NULL; at = f->caller) {
		*known |= f->kind == FRAME_PYTHON ? MARK_PYTHON : 0;
		*known |= map__find(&t->functions, &f->code) ? MARK_RANKS : 0;
	}
	return *known;
}

static int add_wait(struct rank_time *t, const struct activity_interval *i, u32 stack)
{
	struct rank_waits *waits = map__get(&t->threads, &i->thread);
	u64 ns = i->to - i->from, from = i->from > t->from ? i->from : t->from;

	if (!waits)
		return -ENOMEM;
	waits->ns += ns;
	if (ns > waits->longest) {
		waits->longest = ns;
		waits->stack = stack;
	}
	for (u64 part = (from - t->from) / t->width; from < i->to && part < RANK_PARTS; part++) {
		u64 end = t->from + (part + 1) * t->width;

		end = end < i->to ? end : i->to;
		waits->parts[part] += end - from;
		from = end;
	}
	return 0;
}

int rank_time__add(struct rank_time *t, const struct activity_interval *i)
{
	u32 stack = i->off_stack ? i->off_stack : i->stack;
	u8 marks;

	if (!t->functions.n || !stack || i->state != ACTIVITY_BLOCKED)
		return 0;
	marks = marks_of(t, stack);
	if (!marks)
		return -ENOMEM;
	if (!(marks & MARK_RANKS))
		return 0;
	if (!map__get(&t->processes, &i->thread.pid))
		return -ENOMEM;
	return marks & MARK_PYTHON ? add_wait(t, i, stack) : 0;
}

bool rank_time__has(const struct rank_time *t, u32 stack)
{
	const u8 *marks = map__find(&t->marks, &stack);

	return marks && *marks & MARK_RANKS;
}
