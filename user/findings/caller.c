// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/caller.h"

#include <stdio.h>
#include <string.h>

#include "findings/classify.h"
#include "output/table.h"
#include "output/text.h"

struct caller_key {
	u32 code, line; /* as in struct stack_frame */
};

struct caller_sum {
	u64 ns;
	u32 frame;
};

static const struct stack_frame *function_of(const struct stacks *stacks, u32 stack)
{
	return stacks__frame(stacks, stack_parts__of(stacks, stack).user);
}

void callers__init(struct callers *c, const struct stacks *stacks, u32 stack)
{
	const struct stack_frame *f = function_of(stacks, stack);

	*c = (struct callers){ .stacks = stacks, .function = f ? f->code : 0 };
	map__init(&c->sums, sizeof(struct caller_key), sizeof(struct caller_sum));
}

/* Returns the frame that called this one from another file of the user's code; 0: there is none. */
static u32 caller_of(const struct stacks *stacks, const struct stack_frame *function)
{
	const struct stack_frame *f;

	for (u32 at = function->caller; (f = stacks__frame(stacks, at)) != NULL; at = f->caller) {
		if (classify__starts_child(f))
			return 0;
		if (stack_frame__is_own(f) && !stack_frame__is_generated(f) && strcmp(f->file, function->file))
			return at;
	}
	return 0;
}

void callers__add(struct callers *c, u32 stack, u64 ns)
{
	const struct stack_frame *function = function_of(c->stacks, stack), *f;
	struct caller_sum *sum;
	struct caller_key key;
	u32 frame;

	if (!function || function->code != c->function)
		return;
	c->ns += ns;
	frame = caller_of(c->stacks, function);
	f = stacks__frame(c->stacks, frame);
	if (!f)
		return;
	key = (struct caller_key){ f->code, f->line };
	sum = map__get(&c->sums, &key);
	if (!sum)
		return;
	sum->ns += ns;
	sum->frame = frame;
}

void callers__finish(struct callers *c, struct finding_code *code)
{
	const struct caller_sum *most = NULL;
	struct finding_code caller = { 0 };

	MAP_EACH(const struct caller_sum *sum, &c->sums)
		most = !most || sum->ns > most->ns ? sum : most;
	if (most && 2 * most->ns >= c->ns) {
		finding_code__fill(&caller, c->stacks, most->frame);
		finding_code__write(&caller, "", "", code->caller, sizeof(code->caller));
		code->caller_percent = table__percent(most->ns, c->ns);
	}
	map__free(&c->sums);
}
