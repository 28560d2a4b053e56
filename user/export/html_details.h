/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an interval of the page's time line was: the call or wait, in which stack, and the thread that ended the wait,
 * or held the lock, with its stack. Equal details share one number.
 */
#pragma once

#include <stdio.h>

#include "model/activity.h"
#include "model/stacks.h"
#include "util/map.h"

/* Numbers in place of one that whats__number returns: several in turn; what a GPU does */
#define WHAT_MIXED    (~0u)
#define WHAT_GPU_BUSY (~1u)
#define WHAT_GPU_IDLE (~2u)

/* Zero the padding. */
struct what {
	u32 reason; /* of struct activity_interval */
	u32 colour; /* enum finding_colour */
	u32 stack, caused_by_stack; /* 0: not known */
	struct thread_key caused_by; /* tid 0: not known */
};

struct whats {
	struct map map; /* struct what -> struct what_numbers */
};

void whats__init(struct whats *w);
void whats__free(struct whats *w);
/* Returns its number; where too many have details, that of its reason and colour alone. ~0u: no memory */
u32 whats__number(struct whats *w, const struct what *what);
/* Returns the number of what two intervals have in common: WHAT_MIXED if their reasons or colours differ. */
u32 whats__common(const struct whats *w, u32 a, u32 b);
const struct what *whats__get(const struct whats *w, u32 number);

/* The stacks of a page, each written once, by numbers from 1 in order of their first use */
struct page_stacks {
	const struct stacks *stacks;
	struct map numbers; /* u32 stack -> u32 number */
	struct map labels; /* struct page_label -> u32 number */
};

void page_stacks__init(struct page_stacks *p, const struct stacks *stacks);
void page_stacks__free(struct page_stacks *p);
/* Returns the stack's number, 0 if it is not known or there are too many. */
u32 page_stacks__number(struct page_stacks *p, u32 stack);
/* Writes `"stacks":[[..]],"frames":[..]`: for each stack its frames as indices of labels, the innermost first. */
void page_stacks__write(struct page_stacks *p, FILE *out);
