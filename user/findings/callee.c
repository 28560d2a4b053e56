// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/callee.h"

#include <stdio.h>
#include <string.h>

#include "findings/rules.h"
#include "model/lock_kind.h"
#include "output/table.h"

#define CALLEE_PERCENT 80
#define WORDS_PERCENT  50

struct callee_sum {
	u64 ns;
	u32 counted; /* number of the last stack in which it was counted */
	u32 frame;
	u32 depth; /* below the user's code */
};

void callees__init(struct callees *c, const struct stacks *stacks)
{
	*c = (struct callees){ .stacks = stacks };
	map__init(&c->sums, sizeof(u32), sizeof(struct callee_sum));
}

void callees__add(struct callees *c, u32 stack, u32 user, u64 ns)
{
	u32 depth = stacks__depth(c->stacks, stack);
	const struct stack_frame *f;

	if (!user)
		return;
	c->ns += ns;
	c->stacks_added++;
	for (u32 at = stack; at != user && (f = stacks__frame(c->stacks, at)) != NULL; at = f->caller, depth--) {
		struct callee_sum *sum = f->code ? map__get(&c->sums, &f->code) : NULL;

		if (!sum)
			continue;
		/* a recursive function counts once in a stack, where it was called first */
		sum->ns += sum->counted == c->stacks_added ? 0 : ns;
		sum->counted = c->stacks_added;
		sum->frame = at;
		sum->depth = depth - stacks__depth(c->stacks, user);
	}
}

/* Returns the words of a rule that state what the function does; NULL: none, or they state what a wait is for. */
static const char *words_of(const struct stack_frame *f)
{
	const struct rule *rule = rule__of(f);

	return rule && (!rule->kind || rule->kind == FINDING_PEER) ? rule->words : NULL;
}

static bool has_name(const struct stack_frame *f, bool only_packages)
{
	if (f->kind == FRAME_PYTHON)
		return *f->name && (!only_packages || stack_frame__is_package(f));
	return !only_packages && f->kind == FRAME_NATIVE && *f->file && !stack_frame__is_address(f) &&
	       !lock_kind__is_mechanism(f);
}

void callees__finish(struct callees *c, bool only_packages, struct callee *callee)
{
	const struct stack_frame *best = NULL;
	u32 depth = 0;

	*callee = (struct callee){ 0 };
	MAP_EACH(const struct callee_sum *sum, &c->sums) {
		const struct stack_frame *f = stacks__frame(c->stacks, sum->frame);
		const char *words = 100 * sum->ns >= WORDS_PERCENT * c->ns ? words_of(f) : NULL;

		if (!words && (callee->words || 100 * sum->ns < CALLEE_PERCENT * c->ns || !has_name(f, only_packages)))
			continue;
		if (best && !callee->words == !words && sum->depth <= depth)
			continue;
		best = f;
		depth = sum->depth;
		callee->words = words;
		callee->percent = table__percent(sum->ns, c->ns);
	}
	map__free(&c->sums);
	if (!best)
		return;
	callee->is_native = best->kind == FRAME_NATIVE;
	callee->is_package = stack_frame__is_package(best);
	stack_frame__qualified(best, callee->name, sizeof(callee->name));
}

const char *callee__text(const struct callee *callee, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s%s", callee->words ? callee->words : "", callee->words ? ": " : "", callee->name);
	return buf;
}
