// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Processes that spend their time in torch.compile: by samples and waits whose stack has torch._dynamo's
 * convert_frame.py, which compiles a function when it is called with properties that no compiled variant of it has.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "findings/span_sums.h"
#include "model/order.h"

/* A program that compiles less often than this may be at its start. */
#define REPEATED_MIN 3

struct compiling {
	u64 ns;
	u64 times; /* at least: an event outside of it was between two */
	bool was_outside; /* since its last event in it */
	u32 stack; /* of the code that called the function, in the longest event */
	u64 stack_ns;
};

/* What a stack says. Of a stack that is cut or has no Python frame it is not known. */
struct stack_place {
	enum { PLACE_NEW, PLACE_UNKNOWN, PLACE_OUTSIDE, PLACE_COMPILES } place;
	u32 caller; /* frame that called torch.compile's code; 0: none */
};

struct reading {
	const struct finding_input *in;
	struct order *order;
	struct map stacks; /* u32 stack -> struct stack_place */
	struct map threads; /* struct thread_key -> struct compiling */
};

/* The file's own code runs when it is imported, which PyTorch does for the first optimizer of a process. */
static bool is_compiler(const struct stack_frame *f)
{
	return f->kind == FRAME_PYTHON && strstr(f->file, "/torch/_dynamo/convert_frame.py") &&
	       strcmp(f->name, "<module>") != 0;
}

static bool has_compiler(const struct stacks *stacks)
{
	for (u32 i = 0; i < stacks__count(stacks); i++)
		if (is_compiler(stacks__frame(stacks, stacks__id(stacks, i))))
			return true;
	return false;
}

static struct stack_place find_place(const struct stacks *stacks, u32 stack)
{
	struct stack_place found = { PLACE_UNKNOWN, 0 };
	const struct stack_frame *f;
	bool is_cut = false;

	for (u32 at = stack; (f = stacks__frame(stacks, at)) != NULL; at = f->caller) {
		is_cut |= f->kind == FRAME_CUT;
		if (f->kind != FRAME_PYTHON)
			continue;
		if (is_compiler(f))
			found = (struct stack_place){ PLACE_COMPILES, 0 };
		else if (found.place != PLACE_COMPILES)
			found.place = PLACE_OUTSIDE;
		else if (!found.caller && !strstr(f->file, "/torch/_dynamo/"))
			found.caller = at;
	}
	if (is_cut && found.place == PLACE_OUTSIDE)
		found.place = PLACE_UNKNOWN;
	return found;
}

/* is_own: the stack was read in this event; else it is one of earlier waits in the same call, which began elsewhere. */
static int add_event(struct reading *r, const struct thread_key *thread, u32 stack, u64 ns, bool is_own)
{
	struct stack_place *p = map__get(&r->stacks, &stack);
	struct compiling *c;

	if (!p)
		return -ENOMEM;
	if (p->place == PLACE_NEW)
		*p = find_place(r->in->stacks, stack);
	c = p->place == PLACE_COMPILES ? map__get(&r->threads, thread) : map__find(&r->threads, thread);
	if (!c)
		return p->place == PLACE_COMPILES ? -ENOMEM : 0;
	if (p->place != PLACE_COMPILES) {
		c->was_outside |= is_own && p->place == PLACE_OUTSIDE;
		return 0;
	}
	if (is_own) {
		c->times += !c->times || c->was_outside;
		c->was_outside = false;
	}
	c->ns += ns;
	if (ns >= c->stack_ns) {
		c->stack_ns = ns;
		c->stack = p->caller;
	}
	return 0;
}

static int on_event(const struct view *v, void *arg)
{
	struct common_fields f = common_fields__of(v->event);
	struct thread_key thread = { (u32)view__s64(v, f.pid), (u32)view__s64(v, f.tid) };
	u64 end = (u64)view__s64(v, f.time);
	struct reading *r = arg;
	u64 ns = f.start ? query__inside(r->in->q, (u64)view__s64(v, f.start), end) : (u64)view__get(v, "period");

	return add_event(r, &thread, (u32)view__get(v, "stack"), ns, !view__get(v, "estimated"));
}

static int on_rows(const struct rows *rows, void *arg)
{
	return order__add(((struct reading *)arg)->order, rows);
}

static int read_stacks(struct reading *r)
{
	const struct schema *schema = trace__schema(r->in->q->trace);
	const struct schema_event *kinds[3] = { schema__event(schema, "sample_cpu") };
	int err = 0;

	kinds[kinds[0] != NULL] = schema__event(schema, "sample_off");
	r->order = order__new(on_event, r);
	if (!r->order)
		return -ENOMEM;
	if (kinds[0])
		err = query__read(r->in->q, kinds, on_rows, r);
	if (!err)
		err = order__finish(r->order);
	order__free(r->order);
	return err;
}

static void add(const struct reading *r, const struct thread_key *thread, const struct compiling *c,
		struct findings *out)
{
	const struct profile_thread *t = map__find(&r->in->profile->threads, thread);
	u64 wall = t ? t->wall : 0;
	struct finding *f;

	if (c->ns < wall / SPAN_SHARE_MIN || c->ns < query__duration(r->in->q) / SPAN_SHARE_MIN)
		return;
	f = findings__add(out, FINDING_COMPILE);
	if (!f)
		return;
	f->confidence = FINDING_ATTRIBUTED;
	f->pid = thread->pid;
	f->tid = thread->tid;
	f->processes = f->threads = 1;
	f->lost_ns = c->ns;
	f->wall_ns = wall > c->ns ? wall : c->ns;
	f->times = c->times;
	f->weight = (double)c->ns * finding_kind__weight(FINDING_COMPILE);
	finding_code__fill(&f->code, r->in->stacks, c->stack);
	snprintf(f->report, sizeof(f->report), "stacks");
	if (c->times == 1)
		snprintf(f->detail, sizeof(f->detail), "once");
	else
		snprintf(f->detail, sizeof(f->detail), "at least %llu times", c->times);
	if (c->times >= REPEATED_MIN)
		snprintf(
			f->advice, sizeof(f->advice), "%s",
			"`TORCH_LOGS=recompiles` prints why; with `dynamic=True`, or with inputs of a few sizes, it compiles fewer variants.");
}

static int find(const struct finding_input *in, struct findings *out)
{
	struct reading r = { .in = in };
	int err;

	/* most traces have no such stack, and then no event has to be read */
	if (!has_compiler(in->stacks))
		return 0;
	map__init(&r.stacks, sizeof(u32), sizeof(struct stack_place));
	map__init(&r.threads, sizeof(struct thread_key), sizeof(struct compiling));
	err = read_stacks(&r);
	for (u32 i = 0; !err && i < r.threads.n; i++)
		add(&r, map__key(&r.threads, i), map__value(&r.threads, i), out);
	MAPS_FREE(&r.stacks, &r.threads);
	return err;
}

FINDINGS(compiled) = { .name = "compiled", .find = find };
