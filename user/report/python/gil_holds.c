// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sums how long the GIL was held, by the function that dropped it (--gil=full). */
#include "report/python/gil.h"

#include <errno.h>

#include "model/vote.h"
#include "util/saturate.h"

struct gil_hold_key {
	struct gil_key gil;
	u32 code; /* 0: the stack is not known, because no thread was waiting */
	u32 unused;
};

struct gil_hold_sum {
	struct vote frame;
	double ns, count;
	u64 max;
};

void gil_holds__init(struct gil_blame *b)
{
	map__init(&b->holds, sizeof(struct gil_hold_key), sizeof(struct gil_hold_sum));
}

int gil_blame__held(struct gil_report *g, const struct gil_held *h, u64 ns)
{
	struct gil_blame *b = &g->blame;
	u32 frame = stacks__top_user(b->stacks, h->stack);
	const struct stack_frame *f = stacks__frame(b->stacks, frame);
	struct gil_hold_key key = { .gil = h->gil, .code = f ? f->code : 0 };
	struct gil_hold_sum *sum = map__get(&b->holds, &key);

	if (!sum)
		return -ENOMEM;
	sum->count += h->weight;
	sum->ns += (double)ns * h->weight;
	sum->max = h->end - h->start > sum->max ? h->end - h->start : sum->max;
	vote(&sum->frame, frame, (double)ns);
	return 0;
}

static const struct column hold_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "gil", "GIL", VALUE_U64, SHOW_NEVER },
	{ "interpreter", "Interpreter", VALUE_U64, SHOW_PLAIN },
	{ "holder", "Dropped in", VALUE_TEXT, SHOW_PLAIN },
	{ "holds", "Holds", VALUE_U64, SHOW_COUNT },
	{ "hold_ns", "Held", VALUE_U64, SHOW_NS },
	{ "max_ns", "Max", VALUE_U64, SHOW_NS },
};

static void fill(const struct gil_report *g, struct table *t)
{
	const struct gil_blame *b = &g->blame;
	char holder[STACK_LABEL];
	u32 i;

	for (i = 0; i < b->holds.n; i++) {
		const struct gil_hold_key *k = map__key(&b->holds, i);
		const struct gil_hold_sum *h = map__value(&b->holds, i);

		stacks__label(b->stacks, h->frame.id, holder, sizeof(holder));
		table__add(t, V_U64(k->gil.pid), V_U64(k->gil.gil), gil_report__interpreter(g, &k->gil),
			   V_TEXT(h->frame.id ? holder : "(no thread was waiting)"), V_U64(saturate__round(h->count)),
			   V_U64(saturate__round(h->ns)), V_U64(h->max));
	}
	table__sort(t, "hold_ns");
}

void gil_holds__table(const struct gil_report *g, struct report_output *out)
{
	struct table *t;

	if (!g->blame.holds.n)
		return;
	t = REPORT_TABLE(out, "holds", "GIL holds by the code that dropped the GIL", hold_columns);
	t->limit = 20;
	fill(g, t);
}
