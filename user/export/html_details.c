// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "export/html_details.h"

#include <string.h>

#include "output/html.h"

/* Bounds of the page's size, regardless of the trace's */
#define WHATS_MAX  200000 /* with details; in memory */
#define STACKS_MAX 2000
#define DEPTH_MAX  64
#define LABELS_MAX 10000

struct page_label {
	char text[160];
};

/* A number is the index in the map. */
struct what_numbers {
	u32 number; /* plus one */
	u32 reason_number; /* of the one with the same reason and colour, and no details */
};

void whats__init(struct whats *w)
{
	map__init(&w->map, sizeof(struct what), sizeof(struct what_numbers));
}

void whats__free(struct whats *w)
{
	map__free(&w->map);
}

static u32 add(struct whats *w, const struct what *what, u32 plain)
{
	struct what_numbers *numbers = map__get(&w->map, what);

	if (!numbers)
		return ~0u;
	if (!numbers->number) {
		numbers->number = w->map.n;
		numbers->reason_number = plain == ~0u ? numbers->number - 1 : plain;
	}
	return numbers->number - 1;
}

u32 whats__number(struct whats *w, const struct what *what)
{
	struct what alone = { .reason = what->reason, .colour = what->colour };
	u32 plain = add(w, &alone, ~0u);

	if (plain == ~0u || (!what->stack && !what->caused_by_stack && !what->caused_by.tid) ||
	    (w->map.n >= WHATS_MAX && !map__find(&w->map, what)))
		return plain;
	return add(w, what, plain);
}

/* A number that is not in the map stands for itself: that of a GPU. */
static u32 plain_of(const struct whats *w, u32 number)
{
	return number < w->map.n ? ((const struct what_numbers *)map__value(&w->map, number))->reason_number : number;
}

u32 whats__common(const struct whats *w, u32 a, u32 b)
{
	if (a == b)
		return a;
	return plain_of(w, a) == plain_of(w, b) ? plain_of(w, a) : WHAT_MIXED;
}

const struct what *whats__get(const struct whats *w, u32 number)
{
	return number < w->map.n ? map__key(&w->map, number) : NULL;
}

void page_stacks__init(struct page_stacks *p, const struct stacks *stacks)
{
	p->stacks = stacks;
	map__init(&p->numbers, sizeof(u32), sizeof(u32));
	map__init(&p->labels, sizeof(struct page_label), sizeof(u32));
}

void page_stacks__free(struct page_stacks *p)
{
	MAPS_FREE(&p->numbers, &p->labels);
}

u32 page_stacks__number(struct page_stacks *p, u32 stack)
{
	u32 *number;

	if (!p->stacks || !stacks__frame(p->stacks, stack))
		return 0;
	number = p->numbers.n < STACKS_MAX ? map__get(&p->numbers, &stack) : map__find(&p->numbers, &stack);
	if (number && !*number)
		*number = p->numbers.n;
	return number ? *number : 0;
}

/* Returns the index of the frame's label; -1: there are too many. */
static s64 label_of(struct page_stacks *p, u32 frame)
{
	struct page_label label = { 0 };
	u32 *number;

	stacks__label(p->stacks, frame, label.text, sizeof(label.text));
	/* what follows the end of the text is part of the key */
	memset(label.text + strlen(label.text), 0, sizeof(label.text) - strlen(label.text));
	number = p->labels.n < LABELS_MAX ? map__get(&p->labels, &label) : map__find(&p->labels, &label);
	if (number && !*number)
		*number = p->labels.n;
	return number ? (s64)*number - 1 : -1;
}

static void write_stack(struct page_stacks *p, u32 stack, FILE *out)
{
	const struct stack_frame *f;
	const char *comma = "";
	u32 depth = 0;

	putc('[', out);
	for (u32 at = stack; depth < DEPTH_MAX && (f = stacks__frame(p->stacks, at)) != NULL; at = f->caller, depth++) {
		fprintf(out, "%s%lld", comma, label_of(p, at));
		comma = ",";
	}
	putc(']', out);
}

void page_stacks__write(struct page_stacks *p, FILE *out)
{
	fputs("\"stacks\":[", out);
	for (u32 i = 0; i < p->numbers.n; i++) {
		fputs(i ? ",\n" : "\n", out);
		write_stack(p, *(const u32 *)map__key(&p->numbers, i), out);
	}
	fputs("],\"frames\":[", out);
	for (u32 i = 0; i < p->labels.n; i++) {
		fputs(i ? ",\n" : "\n", out);
		html__put_json(out, ((const struct page_label *)map__key(&p->labels, i))->text);
	}
	putc(']', out);
}
