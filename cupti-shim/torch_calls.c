// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The calls that are open in a thread, and their records, which are made when they end. A backward node has its number
 * from the thread's counter, so the innermost call during which the counter rose has made the node.
 */
#define _GNU_SOURCE
#include "torch.h"

#include "lanes.h"
#include "shim.h"
#include "texts.h"

#include "core/shim_torch.h"

#include <string.h>

#define DEPTH_MAX 256

struct open_call {
	const struct record_function *f;
	uint64_t start;
	uint64_t name;
	int64_t sequence; /* of the first backward node that it made; -1: none */
	uint32_t inner; /* recorded calls within it */
	bool is_operator; /* the dispatcher called it; what it calls is inner */
};

struct stack {
	uint32_t depth;
	uint32_t operators; /* of the open calls */
	uint32_t over; /* calls that began when it was full */
	uint32_t era; /* of the recording: older calls are not there any more */
	int64_t sequence; /* the thread's counter when it was last seen */
	uint64_t passed, recorded; /* calls */
	struct open_call calls[DEPTH_MAX];
};

static struct {
	bool records, inner;
	uint32_t era;
	uint64_t lost;
} state;

static uint8_t byte_at(const struct record_function *f, uint32_t offset)
{
	return ((const uint8_t *)f)[offset];
}

static int64_t word_at(const struct record_function *f, uint32_t offset)
{
	int64_t n;

	memcpy(&n, (const uint8_t *)f + offset, sizeof(n));
	return n;
}

static struct stack *own_stack(void)
{
	struct lane_thread *t = lane__thread();
	struct stack *s = t ? lane_thread__room(t, sizeof(*s), LANE_TORCH) : NULL;

	if (s && s->era != state.era) {
		s->depth = s->operators = s->over = 0;
		s->passed = s->recorded = 0;
		s->era = state.era;
		s->sequence = torch_library.next_sequence();
	}
	return s;
}

/* The nodes that were made since the last call are the innermost call's. */
static void note_nodes(struct stack *s)
{
	int64_t next = torch_library.next_sequence();
	struct open_call *c = s->depth ? &s->calls[s->depth - 1] : NULL;

	if (next != s->sequence && c && c->sequence < 0)
		c->sequence = s->sequence;
	s->sequence = next;
}

static uint64_t name_of(const struct record_function *f)
{
	const char *name = torch_library.name(f);
	size_t len = name ? strnlen(name, SHIM_TORCH_NAME_MAX) : 0;

	return len ? text__id(LANE_TORCH, SHIM_TORCH_NAME, name, len) : 0;
}

/* An operator that an operator calls */
static bool is_left_out(const struct stack *s, const struct record_function *f)
{
	return s->operators && !state.inner && byte_at(f, torch_library.scope) == TORCH_SCOPE_FUNCTION;
}

void **torch_calls__begin(void **context, const struct record_function *f)
{
	struct stack *s;
	struct open_call *c;

	*context = NULL;
	if (!state.records)
		torch__drop_orphans();
	if (!state.records || !(s = own_stack()))
		return context;
	s->passed++;
	if (is_left_out(s, f))
		return context;
	if (s->depth == DEPTH_MAX) {
		s->over++;
		__atomic_fetch_add(&state.lost, 1, __ATOMIC_RELAXED);
		return context;
	}
	note_nodes(s);
	c = &s->calls[s->depth++];
	*c = (struct open_call){
		.f = f,
		.sequence = -1,
		.is_operator = byte_at(f, torch_library.is_operator) == 1,
		.name = name_of(f),
	};
	s->operators += c->is_operator;
	c->start = shim__now();
	return context;
}

static void record_range(const struct open_call *c, uint64_t end)
{
	struct shim_torch_range *r = lane__record(LANE_TORCH, SHIM_TORCH_RANGE, sizeof(*r), c->start, end);

	if (!r)
		return;
	strncpy(r->name, text__of(c->name), sizeof(r->name) - 1);
	lane__commit(LANE_TORCH);
}

static void record(const struct open_call *c, uint64_t end)
{
	uint8_t scope = byte_at(c->f, torch_library.scope);
	bool is_node = scope == TORCH_SCOPE_BACKWARD;
	struct shim_torch_call *r;

	if (scope == TORCH_SCOPE_USER) {
		record_range(c, end);
		return;
	}
	text__use(LANE_TORCH, SHIM_TORCH_NAME, c->name);
	r = lane__record(LANE_TORCH, is_node ? SHIM_TORCH_NODE : SHIM_TORCH_OP, sizeof(*r), c->start, end);
	if (!r)
		return;
	r->name = c->name;
	r->sequence = is_node ? word_at(c->f, torch_library.sequence) : c->sequence;
	r->inner = c->inner;
	if (is_node)
		r->thread = (uint32_t)word_at(c->f, torch_library.forward_thread);
	else if (c->sequence >= 0)
		r->thread = (uint32_t)word_at(c->f, torch_library.thread);
	lane__commit(LANE_TORCH);
}

/* The index of the open call of f; -1: it began before the recording, or in another thread. */
static int find(const struct stack *s, const struct record_function *f)
{
	int i = (int)s->depth - 1;

	while (i >= 0 && s->calls[i].f != f)
		i--;
	return i;
}

/* Calls within it whose end was not seen are dropped. */
void torch_calls__end(const struct record_function *f, void *context)
{
	struct open_call *c;
	struct stack *s;
	uint64_t end;
	int i;

	if (!state.records || !(s = own_stack()))
		return;
	i = (int)s->depth - 1;
	if (i >= 0 && s->calls[i].f != f && is_left_out(s, f))
		return;
	end = shim__now();
	if (s->over) {
		s->over--;
		return;
	}
	i = find(s, f);
	if (i < 0)
		return;
	note_nodes(s);
	for (int k = i; k < (int)s->depth; k++)
		s->operators -= s->calls[k].is_operator;
	s->depth = (uint32_t)i;
	c = &s->calls[i];
	if (i)
		s->calls[i - 1].inner += c->inner + 1;
	s->recorded++;
	record(c, end);
	if (byte_at(f, torch_library.scope) == TORCH_SCOPE_USER && !strncmp(text__of(c->name), "Optimizer.step#", 15))
		torch_budget__step_ended(end);
}

static void add_counts(struct lane_thread *t, void *room, void *arg)
{
	const struct stack *s = room;
	uint64_t *counts = arg;

	if (s->era != state.era)
		return;
	counts[0] += __atomic_load_n(&s->passed, __ATOMIC_RELAXED);
	counts[1] += __atomic_load_n(&s->recorded, __ATOMIC_RELAXED);
}

void torch_calls__count(uint64_t *passed, uint64_t *recorded)
{
	uint64_t counts[2] = { 0 };

	lanes__each(LANE_TORCH, add_counts, counts);
	*passed = counts[0];
	*recorded = counts[1];
}

void torch_calls__set_recording(bool records, bool inner)
{
	if (records && !state.records)
		__atomic_fetch_add(&state.era, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&state.inner, inner, __ATOMIC_RELAXED);
	__atomic_store_n(&state.records, records, __ATOMIC_RELEASE);
}

uint64_t torch_calls__lost(void)
{
	return __atomic_exchange_n(&state.lost, 0, __ATOMIC_RELAXED);
}
