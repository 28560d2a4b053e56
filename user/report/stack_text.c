// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report/stack_text.h"

#include <stdlib.h>

#define TEXT_MAX_BYTES (64 << 10)
#define TEXTS_MAX      (64 << 20)
#define TEXT_MIN_BYTES 256

char *stack_texts__add(struct stack_texts *t, const struct stacks *s, u32 stack)
{
	size_t size = t->used + TEXT_MAX_BYTES <= TEXTS_MAX ? TEXT_MAX_BYTES : TEXT_MIN_BYTES, len;
	char *text = stack ? malloc(size) : NULL, *shrunk;

	if (!text)
		return NULL;
	len = stacks__folded(s, stack, text, size);
	t->n_cut += len >= size;
	len = len < size ? len + 1 : size;
	t->used += len;
	shrunk = realloc(text, len);
	if (shrunk)
		return shrunk;
	return text;
}

void stack_texts__add_note(const struct stack_texts *t, struct report_output *out)
{
	if (t->n_cut)
		report_output__note(out,
				    "%u stacks are cut: a text has at most %d KiB, and %d bytes after %d MiB of texts.",
				    t->n_cut, TEXT_MAX_BYTES >> 10, TEXT_MIN_BYTES, TEXTS_MAX >> 20);
}
