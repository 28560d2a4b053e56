// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Attributes waits for the GIL to the code that held it. Reports show the innermost frame of each stack in the user's
 * own code (stacks__top_user), with the line at which the function was most of the time. Without a stack, as in traces
 * of older versions, they show the thread.
 */
#include "report/python/gil.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/vote.h"
#include "output/text.h"
#include "probes/gil/gil.h"
#include "report/stack_text.h"
#include "util/saturate.h"

/* Limits for pairs of functions and of whole stacks, beyond which their time is only summed. */
#define PAIRS_MAX  65536u
#define STACKS_MAX 262144u

enum side_kind { SIDE_UNKNOWN, SIDE_NONE, SIDE_THREAD, SIDE_CODE, SIDE_FRAME };

struct gil_side {
	struct gil_key gil;
	enum side_kind kind;
	u32 id; /* of the thread, the code or the frame */
	u32 is_waiter; /* 1: the side is the waiter's */
	u32 unused;
};

struct gil_side_sum {
	struct vote frame; /* of the function itself */
	struct vote inside; /* of the innermost frame of the stack */
	double ns;
	u64 longest_ns; /* longest hold */
	u32 index; /* in sides */
};

struct gil_pair_key {
	u32 holder, waiter; /* index in sides */
};

struct gil_stacks_key {
	struct gil_key gil;
	u32 holder, waiter; /* stacks */
	u32 holder_tid, waiter_tid; /* where there is no stack */
	enum gil_holding holding;
	u32 unused;
};

struct gil_pair {
	double ns, waits;
	u64 longest_ns; /* longest hold */
};

int gil_blame__init(struct gil_blame *b, const struct query *args)
{
	int err;

	map__init(&b->sides, sizeof(struct gil_side), sizeof(struct gil_side_sum));
	map__init(&b->pairs, sizeof(struct gil_pair_key), sizeof(struct gil_pair));
	map__init(&b->by_stack, sizeof(struct gil_stacks_key), sizeof(struct gil_pair));
	gil_holds__init(b);
	err = stacks__load(&b->stacks, args->trace);
	return err ? err : gil_natives__init(b, args);
}

void gil_blame__free(struct gil_blame *b)
{
	stacks__free(b->stacks);
	gil_natives__free(&b->natives);
	MAPS_FREE(&b->sides, &b->pairs, &b->by_stack, &b->holds);
}

struct who {
	const struct gil_key *gil;
	u32 tid, stack;
	enum gil_holding holding;
	bool is_waiter;
};

static struct gil_side side_of(const struct gil_blame *b, const struct who *w, u32 *frame)
{
	struct gil_side side = { .gil = *w->gil, .is_waiter = w->is_waiter };
	const struct stack_frame *f;

	*frame = stacks__top_user(b->stacks, w->stack);
	f = stacks__frame(b->stacks, *frame);
	if (w->holding == GIL_FREE) {
		side.kind = SIDE_NONE;
	} else if (f) {
		side.kind = f->code ? SIDE_CODE : SIDE_FRAME;
		side.id = f->code ? f->code : *frame;
	} else if (w->tid) {
		side.kind = SIDE_THREAD;
		side.id = w->tid;
	}
	return side;
}

/* Returns an index in sides, ~0 without memory. */
static u32 add_side(struct gil_blame *b, const struct who *w, double ns, u64 held)
{
	u32 n = b->sides.n, frame;
	struct gil_side_sum *sum;
	struct gil_side side;

	side = side_of(b, w, &frame);
	sum = map__get(&b->sides, &side);
	if (!sum)
		return ~0u;
	if (b->sides.n > n)
		sum->index = n;
	sum->ns += ns;
	sum->longest_ns = held > sum->longest_ns ? held : sum->longest_ns;
	vote(&sum->frame, frame, ns);
	vote(&sum->inside, w->stack, ns);
	return sum->index;
}

static int add_pair(struct gil_blame *b, struct map *m, u32 max, const void *key, double ns, bool new,
		    const struct gil_segment *p)
{
	struct gil_pair *pair = m->n < max ? map__get(m, key) : map__find(m, key);

	if (!pair) {
		b->left_out += ns;
		return m->n < max ? -ENOMEM : 0;
	}
	pair->ns += ns;
	pair->waits += new ? p->weight : 0;
	pair->longest_ns = p->holding == GIL_HELD && p->hold_ns > pair->longest_ns ? p->hold_ns : pair->longest_ns;
	return 0;
}

static int add_stacks(struct gil_blame *b, const struct gil_segment *p, double ns, bool new)
{
	bool held = p->holding == GIL_HELD;
	struct gil_stacks_key key = {
		.gil = p->gil,
		.holder = held ? p->holder_stack : 0,
		.waiter = p->waiter_stack,
		.holder_tid = held && !p->holder_stack ? p->holder : 0,
		.waiter_tid = p->waiter_stack ? 0 : p->waiter,
		.holding = p->holding,
	};

	return add_pair(b, &b->by_stack, STACKS_MAX, &key, ns, new, p);
}

/* Returns the function of a side, 0 for a thread. */
static u32 function_of(const struct gil_blame *b, u32 side)
{
	const struct gil_side *s = map__key(&b->sides, side);

	return s->kind >= SIDE_CODE ? s->id : 0;
}

int gil_blame__add(struct gil_report *g, const struct gil_segment *p, double ns)
{
	struct gil_thread_key thread_key = { p->gil, p->waiter, 0 };
	struct gil_thread *thread = map__get(&g->threads, &thread_key);
	struct gil_blame *b = &g->blame;
	bool held = p->holding == GIL_HELD, new;
	struct who holder = { &p->gil, held ? p->holder : 0, held ? p->holder_stack : 0, p->holding, false };
	struct who waiter = { &p->gil, p->waiter, p->waiter_stack, GIL_HELD, true };
	struct gil_pair_key key;

	key.holder = add_side(b, &holder, ns, held ? p->hold_ns : 0);
	key.waiter = add_side(b, &waiter, ns, 0);
	if (!thread || key.holder == ~0u || key.waiter == ~0u)
		return -ENOMEM;
	b->ns += ns;
	b->free_ns += p->holding == GIL_FREE ? ns : 0;
	b->estimated_ns += p->estimated ? ns : 0;
	b->unknown_ns += p->holding == GIL_UNKNOWN || (held && !p->holder && !p->holder_stack) ? ns : 0;
	/* An attempt counts once for successive segments with one holder; again if another held the GIL in between. */
	new = thread->attempt != p->attempt || thread->blamed != key.holder;
	thread->attempt = p->attempt;
	thread->blamed = key.holder;
	if (holder.tid && gil_natives__add(&b->natives, key.holder, function_of(b, key.holder), p))
		return -ENOMEM;
	return add_pair(b, &b->pairs, PAIRS_MAX, &key, ns, new, p) ?: add_stacks(b, p, ns, new);
}

/* name: stacks__label or stacks__function */
static void name_side(const struct gil_report *g, u32 i, char *(*name)(const struct stacks *, u32, char *, size_t),
		      char *buf, size_t size)
{
	const struct gil_side *side = map__key(&g->blame.sides, i);
	const struct gil_side_sum *sum = map__value(&g->blame.sides, i);
	char who[64];

	if (side->kind == SIDE_NONE)
		snprintf(buf, size, "(free: woken, not running yet)");
	else if (side->kind == SIDE_UNKNOWN)
		snprintf(buf, size, "(holder unknown)");
	else if (side->kind == SIDE_THREAD)
		snprintf(buf, size, "%s", names__label(g->names, who, sizeof(who), side->gil.pid, side->id));
	else
		name(g->blame.stacks, sum->frame.id, buf, size);
}

static void label(const struct gil_report *g, u32 side, char *buf, size_t size)
{
	name_side(g, side, stacks__label, buf, size);
}

static const struct column blame_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "gil", "GIL", VALUE_U64, SHOW_NEVER },
	{ "interpreter", "Interpreter", VALUE_U64, SHOW_PLAIN },
	{ "holder", "Held by", VALUE_TEXT, SHOW_PLAIN },
	{ "inside", "At", VALUE_TEXT, SHOW_PLAIN },
	{ "native", "Native", VALUE_TEXT, SHOW_PLAIN },
	{ "native_percent", "of its samples (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "native_samples", "Samples", VALUE_U64, SHOW_NEVER },
	{ "waiter", "Affected", VALUE_TEXT, SHOW_PLAIN },
	{ "waits", "Waits", VALUE_U64, SHOW_COUNT },
	{ "wait_ns", "Waited", VALUE_U64, SHOW_NS },
	{ "share_percent", "Share %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "held_max_ns", "Longest hold", VALUE_U64, SHOW_NS },
};

static const struct column stacks_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "gil", "GIL", VALUE_U64, SHOW_HEX },
	{ "interpreter", "Interpreter", VALUE_U64, SHOW_PLAIN },
	{ "holder", "Held by", VALUE_TEXT, SHOW_PLAIN },
	{ "waiter", "Affected", VALUE_TEXT, SHOW_PLAIN },
	{ "holder_tid", "Holder", VALUE_U64, SHOW_PLAIN },
	{ "waiter_tid", "Waiter", VALUE_U64, SHOW_PLAIN },
	{ "waits", "Waits", VALUE_U64, SHOW_COUNT },
	{ "wait_ns", "Waited", VALUE_U64, SHOW_NS },
	{ "share_percent", "Share %", VALUE_DOUBLE, SHOW_PERCENT },
};

static double share_of(const struct gil_blame *b, double ns)
{
	return b->ns > 0 ? 100 * ns / b->ns : 0;
}

bool gil_blame__pair(const struct gil_report *g, u32 i, struct gil_blamed *out)
{
	const struct gil_blame *b = &g->blame;
	const struct gil_pair_key *k = i < b->pairs.n ? map__key(&b->pairs, i) : NULL;
	const struct gil_pair *p = k ? map__value(&b->pairs, i) : NULL;

	if (!k)
		return false;
	out->pid = ((const struct gil_side *)map__key(&b->sides, k->holder))->gil.pid;
	out->waits = saturate__round(p->waits);
	out->wait_ns = saturate__round(p->ns);
	out->share_percent = share_of(b, p->ns);
	name_side(g, k->holder, stacks__function, out->holder, sizeof(out->holder));
	name_side(g, k->waiter, stacks__function, out->waiter, sizeof(out->waiter));
	return true;
}

static void fill_pairs(const struct gil_report *g, struct table *t)
{
	const struct gil_blame *b = &g->blame;
	char holder[STACK_LABEL], waiter[STACK_LABEL], inside[STACK_LABEL];
	u32 i;

	for (i = 0; i < b->pairs.n; i++) {
		const struct gil_pair_key *k = map__key(&b->pairs, i);
		const struct gil_pair *p = map__value(&b->pairs, i);
		const struct gil_side *side = map__key(&b->sides, k->holder);
		const struct gil_side_sum *sum = map__value(&b->sides, k->holder);
		bool below = side->kind >= SIDE_CODE && sum->inside.id != sum->frame.id;
		struct gil_native_share part;
		const char *native = gil_natives__main_function(&b->natives, k->holder, &part);

		label(g, k->holder, holder, sizeof(holder));
		label(g, k->waiter, waiter, sizeof(waiter));
		if (below)
			stacks__label(b->stacks, sum->inside.id, inside, sizeof(inside));
		table__add(t, V_U64(side->gil.pid), V_U64(side->gil.gil), gil_report__interpreter(g, &side->gil),
			   V_TEXT(holder), V_TEXT(below ? inside : NULL), V_TEXT(native),
			   native ? V_DBL(part.percent) : V_NONE, native ? V_U64(part.samples) : V_NONE, V_TEXT(waiter),
			   V_U64(saturate__round(p->waits)), V_U64(saturate__round(p->ns)), V_DBL(share_of(b, p->ns)),
			   p->longest_ns ? V_U64(p->longest_ns) : V_NONE);
	}
	table__sort(t, "wait_ns");
}

static void fill_stacks(const struct gil_report *g, struct table *t, struct report_output *out)
{
	const struct gil_blame *b = &g->blame;
	struct stack_texts texts = {};
	u32 i;

	for (i = 0; i < b->by_stack.n; i++) {
		const struct gil_stacks_key *k = map__key(&b->by_stack, i);
		const struct gil_pair *p = map__value(&b->by_stack, i);
		char *holder = stack_texts__add(&texts, b->stacks, k->holder);
		char *waiter = stack_texts__add(&texts, b->stacks, k->waiter);

		table__add(t, V_U64(k->gil.pid), V_U64(k->gil.gil), gil_report__interpreter(g, &k->gil),
			   k->holding == GIL_FREE ? V_TEXT("(free)") : V_TEXT(holder), V_TEXT(waiter),
			   k->holder_tid ? V_U64(k->holder_tid) : V_NONE, k->waiter_tid ? V_U64(k->waiter_tid) : V_NONE,
			   V_U64(saturate__round(p->waits)), V_U64(saturate__round(p->ns)), V_DBL(share_of(b, p->ns)));
		free(holder);
		free(waiter);
	}
	table__sort(t, "wait_ns");
	stack_texts__add_note(&texts, out);
}

void gil_blame__tables(const struct gil_report *g, struct report_output *out)
{
	const struct gil_blame *b = &g->blame;
	struct table *blame, *stacks;

	blame = REPORT_TABLE(out, "blame", "Which code made which code wait", blame_columns);
	blame->limit = 20;
	fill_pairs(g, blame);
	if (b->pairs.n)
		gil_natives__add_notes(&b->natives, out);
	stacks = REPORT_MACHINE_TABLE(out, "blame_stacks", "The same by whole stacks", stacks_columns);
	fill_stacks(g, stacks, out);
	gil_holds__table(g, out);
	if (share_of(b, b->estimated_ns) >= 0.5)
		report_output__note(
			out,
			"%.0f%% of the waiting is attributed by the stacks of other waits: of waits and holds shorter than %u ms only one for each %u ms gets a stack.",
			share_of(b, b->estimated_ns), GIL_STACK_NS / 1000000, GIL_STACK_NS / 1000000);
	if (g->blame.left_out > 0)
		report_output__note(
			out, "%.1f%% of the waiting is left out: the report stores at most %u pairs of functions.",
			share_of(&g->blame, g->blame.left_out), PAIRS_MAX);
}

/* The waits that a function caused in all processes, since the workers of a server run the same code. */
struct culprit_key {
	u32 pid; /* of a thread; 0 for code */
	enum side_kind kind;
	u32 id;
};

struct culprit {
	double ns, main_ns;
	u64 longest_ns; /* longest hold */
	u32 main_side; /* index in sides of the process with the largest part */
	u32 gils;
};

static bool sum_culprits(const struct gil_blame *b, struct map *culprits)
{
	for (u32 i = 0; i < b->sides.n; i++) {
		const struct gil_side *side = map__key(&b->sides, i);
		const struct gil_side_sum *sum = map__value(&b->sides, i);
		struct culprit_key key = { .kind = side->kind, .id = side->id };
		struct culprit *c;

		if (side->is_waiter || side->kind == SIDE_NONE || side->kind == SIDE_UNKNOWN)
			continue;
		key.pid = side->kind == SIDE_THREAD ? side->gil.pid : 0;
		c = map__get(culprits, &key);
		if (!c)
			return false;
		c->ns += sum->ns;
		c->longest_ns = sum->longest_ns > c->longest_ns ? sum->longest_ns : c->longest_ns;
		c->gils++;
		if (c->gils == 1 || sum->ns > c->main_ns) {
			c->main_ns = sum->ns;
			c->main_side = i;
		}
	}
	return true;
}

/* Returns the function or thread that caused most waits; .gils is 0 if there is none. */
static struct culprit worst_culprit(const struct gil_blame *b)
{
	struct culprit worst = {};
	struct map culprits;

	map__init(&culprits, sizeof(struct culprit_key), sizeof(struct culprit));
	if (sum_culprits(b, &culprits))
		MAP_EACH(const struct culprit *c, &culprits)
			if (!worst.gils || c->ns > worst.ns)
				worst = *c;
	map__free(&culprits);
	return worst;
}

/* Returns the side that waited longest for that holder, and its ns. */
static u32 worst_waiter(const struct gil_blame *b, u32 holder, double *ns)
{
	u32 i, best = ~0u;
	double most = 0;

	for (i = 0; i < b->pairs.n; i++) {
		const struct gil_pair_key *k = map__key(&b->pairs, i);
		const struct gil_pair *p = map__value(&b->pairs, i);

		if (k->holder != holder || p->ns <= most)
			continue;
		best = k->waiter;
		most = p->ns;
	}
	*ns = most;
	return best;
}

/* If there are several interpreters, returns the name of the affected one, or how many there are. */
static const char *where_of(const struct gil_report *g, const struct culprit *c, char *buf, size_t size)
{
	const struct gil_side *side = map__key(&g->blame.sides, c->main_side);
	char who[GIL_LABEL];

	buf[0] = 0;
	if (c->gils > 1)
		snprintf(buf, size, " in %u interpreters", c->gils);
	else if (g->interpreters.n > 1 && side->kind != SIDE_THREAD)
		snprintf(buf, size, " in %s", gil_report__label(g, &side->gil, who));
	return buf;
}

void gil_blame__add_findings(const struct gil_report *g, struct report_output *out)
{
	const struct gil_blame *b = &g->blame;
	char holder[STACK_LABEL], waiter[STACK_LABEL], held[TEXT_NUMBER], part[32] = "";
	struct culprit worst = worst_culprit(b);
	double ns = 0;
	u32 affected = worst.gils ? worst_waiter(b, worst.main_side, &ns) : ~0u;
	struct gil_native_share in_c;
	const char *native;
	char where[GIL_LABEL + 8], c_text[STACK_LABEL] = "";

	if (affected == ~0u)
		return;
	label(g, worst.main_side, holder, sizeof(holder));
	label(g, affected, waiter, sizeof(waiter));
	text__ns(held, sizeof(held), worst.longest_ns);
	native = gil_natives__main_function(&b->natives, worst.main_side, &in_c);
	if (in_c.mostly)
		snprintf(c_text, sizeof(c_text), ", %.0f%% of %u samples in C: %s", in_c.percent, in_c.samples, native);
	/* Other waiters were affected, too: the first may have only a small part of the waits. */
	if (ns < 0.9 * worst.main_ns && worst.gils == 1)
		snprintf(part, sizeof(part), " (%.0f%%) and others", share_of(b, ns));
	else if (ns < 0.9 * worst.main_ns)
		snprintf(part, sizeof(part), " and others");
	report_output__finding(
		out,
		"%.0f%% of all waiting for the GIL was caused by %s%s, holding the GIL for up to %s%s; affected: %s%s.",
		share_of(b, worst.ns), holder, where_of(g, &worst, where, sizeof(where)), held, c_text, waiter, part);
	REPORT_FIGURES(out, FIGURE("percent", V_DBL(share_of(b, worst.ns))),
		       FIGURE("wait_ns", V_U64(saturate__round(worst.ns))), FIGURE("holder", V_TEXT(holder)),
		       FIGURE("held_max_ns", V_U64(worst.longest_ns)), FIGURE("native", V_TEXT(native)),
		       FIGURE("native_percent", native ? V_DBL(in_c.percent) : V_NONE),
		       FIGURE("native_samples", native ? V_U64(in_c.samples) : V_NONE),
		       FIGURE("waiter", V_TEXT(waiter)), FIGURE("waiter_ns", V_U64(saturate__round(ns))));
	if (b->free_ns > b->ns / 10)
		report_output__finding(
			out,
			"In %.0f%% of all waiting for the GIL no thread held it: the thread woken for it was not running yet.",
			share_of(b, b->free_ns));
	if (b->free_ns > b->ns / 10)
		REPORT_FIGURES(out, FIGURE("percent", V_DBL(share_of(b, b->free_ns))));
	if (b->unknown_ns > b->ns / 10)
		report_output__finding(out, "For %.0f%% of all waiting for the GIL the holder is not known.",
				       share_of(b, b->unknown_ns));
	if (b->unknown_ns > b->ns / 10)
		REPORT_FIGURES(out, FIGURE("percent", V_DBL(share_of(b, b->unknown_ns))));
}
