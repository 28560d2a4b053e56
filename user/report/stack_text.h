/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Formats whole stacks for tables. A small trace may have many long ones, so a text has at most 64 KiB, all texts of a
 * report 64 MiB together, and further texts 256 bytes.
 */
#pragma once

#include "model/stacks.h"
#include "output/table.h"

struct stack_texts {
	size_t used; /* bytes so far; zeroed at the start */
	u32 n_cut;
};

/* Returns stacks__folded() as a malloc'ed text; NULL without a stack or memory. */
char *stack_texts__add(struct stack_texts *t, const struct stacks *s, u32 stack);
/* Adds a note if texts were cut. */
void stack_texts__add_note(const struct stack_texts *t, struct report_output *out);
