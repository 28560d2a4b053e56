/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program of allocations. Before a family includes this, it defines the table ALLOCATIONS and alloc_by_struct(). */
#pragma once

static __always_inline void alloc_return(struct NAME(alloc) * e)
{
	e->address = args__out(&e->call, SPAN_OUT(e));
}

CALL_STACK_EXIT(alloc, ALLOCATIONS(ROW_FUNCTIONS), alloc_return)
{
	static const struct alloc_row rows[ROWS_MAX] = { ALLOCATIONS(ROW_WORDS) };
	const struct alloc_row *r = ROW_OF(rows, group);
	struct args a = args__read(ctx);
	u64 words[WORDS_MAX] = {};

	words__read(words, &a);
	SPAN_OUT(e) = words[1];
	e->bytes = word(words, r->bytes) * word__factor(words, r->rows) * word__factor(words, r->layers);
	e->memory = r->memory;
	e->api_flags = word(words, r->flags);
	e->stream = word(words, r->stream);
	e->pool = word(words, r->pool);
	alloc_by_struct(e, words, r);
}
