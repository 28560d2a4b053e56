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
	f = stacks__frame(c->stacks, user);
	c->below_native = f && f->kind == FRAME_NATIVE;
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

static bool has_name(const struct callees *c, const struct stack_frame *f, bool only_packages)
{
	if (f->kind == FRAME_PYTHON)
		return *f->name && (!only_packages || stack_frame__is_package(f));
	return !only_packages && f->kind == FRAME_NATIVE && *f->file && !stack_frame__is_address(f) &&
	       (c->below_native || !lock_kind__is_mechanism(f));
}

/* Returns the deepest function with most of the time; one with words precedes those without. NULL: none */
static const struct callee_sum *deepest(const struct callees *c, bool only_packages, const char **best_words)
{
	const struct callee_sum *best = NULL;

	*best_words = NULL;
	MAP_EACH(const struct callee_sum *sum, &c->sums) {
		const struct stack_frame *f = stacks__frame(c->stacks, sum->frame);
		const char *words = 100 * sum->ns >= WORDS_PERCENT * c->ns ? words_of(f) : NULL;

		if (!words && (*best_words || 100 * sum->ns < CALLEE_PERCENT * c->ns || !has_name(c, f, only_packages)))
			continue;
		if (best && !*best_words == !words && sum->depth <= best->depth)
			continue;
		best = sum;
		*best_words = words;
	}
	return best;
}

/* Neither a decorator's wrapper ("<locals>") nor what an import runs ("<frozen importlib>") is what a line calls. */
static bool is_called_by_name(const struct callees *c, const struct stack_frame *f, bool only_packages)
{
	if (c->below_native || f->kind != FRAME_PYTHON)
		return c->below_native && has_name(c, f, only_packages);
	return has_name(c, f, only_packages) && !strchr(f->name, '<') && !strchr(f->file, '<');
}

/* Returns the outermost function with most of the time: the one that the user's code called. NULL: none */
static const struct callee_sum *outermost(const struct callees *c, bool only_packages)
{
	const struct callee_sum *best = NULL;

	MAP_EACH(const struct callee_sum *sum, &c->sums)
		if (100 * sum->ns >= CALLEE_PERCENT * c->ns && (!best || sum->depth < best->depth) &&
		    is_called_by_name(c, stacks__frame(c->stacks, sum->frame), only_packages))
			best = sum;
	return best;
}

void callees__finish(struct callees *c, bool only_packages, struct callee *callee)
{
	const char *words;
	const struct callee_sum *best = deepest(c, only_packages, &words);
	/* for native code words suffice: what calls __cxa_throw is as unknown to a reader */
	const struct callee_sum *outer = best && !(words && c->below_native) ? outermost(c, only_packages) : NULL;
	const struct stack_frame *f;

	*callee = (struct callee){ .words = words };
	/* the same words state what both do: the user knows the one that the line calls */
	if (outer && words && words_of(stacks__frame(c->stacks, outer->frame)) == words)
		best = outer;
	if (best) {
		f = stacks__frame(c->stacks, best->frame);
		callee->is_native = f->kind == FRAME_NATIVE;
		callee->is_package = stack_frame__is_package(f);
		stack_frame__qualified(f, callee->name, sizeof(callee->name));
		callee->percent = table__percent(best->ns, c->ns);
	}
	if (outer && outer->depth < best->depth) {
		f = stacks__frame(c->stacks, outer->frame);
		stack_frame__qualified(f, callee->outer, sizeof(callee->outer));
		callee->percent = table__percent(outer->ns, c->ns);
	}
	map__free(&c->sums);
}

const char *callee__deepest(const struct callee *callee, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s%s", callee->words ? callee->words : "", callee->words ? ": " : "", callee->name);
	return buf;
}

/* Returns the deepest function's name, without the package if it is that of the outer one. */
static const char *short_name(const struct callee *callee)
{
	const char *end = strstr(callee->outer, "'s ");
	size_t len = end ? (size_t)(end - callee->outer) + 3 : 0;

	return len && callee->is_package && !strncmp(callee->name, callee->outer, len) ? callee->name + len :
											 callee->name;
}

const char *callee__text(const struct callee *callee, char *buf, size_t size)
{
	if (!*callee->outer)
		return callee__deepest(callee, buf, size);
	snprintf(buf, size, "%s, mostly in %s%s%s", callee->outer, callee->words ? callee->words : "",
		 callee->words ? ": " : "", short_name(callee));
	return buf;
}
