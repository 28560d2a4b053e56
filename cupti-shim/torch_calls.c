// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The calls that are open in a thread, and their records, which are made when they end. A backward node has its number
 * from the thread's counter, so the innermost call during which the counter rose has made the node.
 *
 * What the shim takes of the program's time is measured in one of SAMPLE_EVERY calls, and whenever records are handed
 * over.
 */
#define _GNU_SOURCE
#include "torch.h"

#include "lanes.h"
#include "shim.h"
#include "texts.h"

#include "core/shim_torch.h"

#include <string.h>

#define DEPTH_MAX    256
#define SAMPLE_EVERY 61 /* a prime: calls of a loop take turns */
#define SAMPLE_MAX   10000 /* ns; in a longer one the thread was interrupted */
#define SAMPLES_MIN  50
#define RECORD_NS    400 /* until there are so many samples */
/* Of TORCH_PASS_NS and a reading of the clock, what lies between both readings */
#define OWN_NS 30

struct open_call {
	const struct record_function *f;
	uint64_t start;
	uint64_t name;
	int64_t sequence; /* of the first backward node that it made; -1: none */
	uint32_t inner; /* recorded calls within it */
	uint32_t hits; /* see struct shim_torch_call */
	bool is_operator; /* the dispatcher called it; what it calls is inner */
};

struct stack {
	uint32_t depth;
	uint32_t operators; /* of the open calls */
	uint32_t over; /* calls that began when it was full */
	uint32_t era; /* of the recording: older calls are not there any more */
	int64_t sequence; /* the thread's counter when it was last seen */
	uint64_t passed, recorded; /* calls */
	uint64_t samples, sampled_ns; /* of begins and ends, half a call each */
	uint64_t flush_ns; /* in which records were handed over, since the recording began */
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
		s->passed = s->recorded = s->samples = s->sampled_ns = 0;
		s->flush_ns = 0;
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

static bool is_sampled(const struct stack *s)
{
	return s->recorded % SAMPLE_EVERY == 0;
}

static void add_sample(struct stack *s, uint64_t ns)
{
	if (ns > SAMPLE_MAX)
		return;
	s->samples++;
	s->sampled_ns += ns;
}

void **torch_calls__begin(void **context, const struct record_function *f)
{
	uint64_t entered;
	struct stack *s;
	struct open_call *c;

	*context = NULL;
	if (!state.records)
		torch__drop_orphans();
	if (!state.records || !(s = own_stack()))
		return context;
	s->passed++;
	if (is_left_out(s, f)) {
		s->calls[s->depth - 1].hits++;
		return context;
	}
	if (s->depth == DEPTH_MAX) {
		s->over++;
		__atomic_fetch_add(&state.lost, 1, __ATOMIC_RELAXED);
		return context;
	}
	entered = is_sampled(s) ? shim__now() : 0;
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
	if (entered)
		add_sample(s, c->start - entered);
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
	r->hits = c->hits;
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
	uint64_t end, flush_ns;
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
	flush_ns = lane_thread__flush_ns(lane__thread(), LANE_TORCH);
	record(c, end);
	flush_ns = lane_thread__flush_ns(lane__thread(), LANE_TORCH) - flush_ns;
	s->flush_ns += flush_ns;
	if (is_sampled(s) && !flush_ns)
		add_sample(s, shim__now() - end);
	s->recorded++;
	if (byte_at(f, torch_library.scope) == TORCH_SCOPE_USER && !strncmp(text__of(c->name), "Optimizer.step#", 15))
		torch_budget__step_ended(end);
}

struct sums {
	struct torch_count count;
	uint64_t samples, sampled_ns, flush_ns;
};

static void add_counts(struct lane_thread *t, void *room, void *arg)
{
	const struct stack *s = room;
	struct sums *sums = arg;

	if (s->era != state.era)
		return;
	sums->count.passed += __atomic_load_n(&s->passed, __ATOMIC_RELAXED);
	sums->count.recorded += __atomic_load_n(&s->recorded, __ATOMIC_RELAXED);
	sums->samples += __atomic_load_n(&s->samples, __ATOMIC_RELAXED);
	sums->sampled_ns += __atomic_load_n(&s->sampled_ns, __ATOMIC_RELAXED);
	sums->flush_ns += __atomic_load_n(&s->flush_ns, __ATOMIC_RELAXED);
}

static void add_up(struct sums *sums)
{
	memset(sums, 0, sizeof(*sums));
	lanes__each(LANE_TORCH, add_counts, sums);
	sums->count.record_ns = RECORD_NS;
	if (sums->samples >= SAMPLES_MIN && sums->count.recorded)
		sums->count.record_ns = 2 * sums->sampled_ns / sums->samples + sums->flush_ns / sums->count.recorded;
}

void torch_calls__count(struct torch_count *count)
{
	struct sums sums;

	add_up(&sums);
	*count = sums.count;
}

void torch_calls__report_cost(void)
{
	struct sums sums;
	struct shim_torch_cost *c = lane__record(LANE_TORCH, SHIM_TORCH_COST, sizeof(*c), 0, shim__now());

	if (!c)
		return;
	add_up(&sums);
	*c = (struct shim_torch_cost){ .call = TORCH_PASS_NS + sums.count.record_ns,
				       .own = OWN_NS,
				       .hit = TORCH_PASS_NS };
	lane__commit(LANE_TORCH);
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
