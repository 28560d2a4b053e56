// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Keeps what recording PyTorch costs within a share of the program's time, or of its CPU time, which is shorter if it
 * waits: after a block of recorded steps of training the callback for operators is removed for as long as their cost
 * requires, and added again when a step ends. Without it PyTorch calls the shim for ranges alone, of which there are
 * few. In a program without steps, such as inference, the shim's thread does the same by time.
 *
 * The cost of a block is that of its calls, of which torch_calls.c measures a part, that of the ranges in the rest
 * before it, and that of its begin and end: the time that PyTorch takes to add and remove the callback, and TOGGLE_NS,
 * an estimate of what is slower afterwards: each thread then makes its list of callbacks anew, and code and data of
 * recording are in no cache. So blocks of short steps have many of them. docs/torch.md has the measurements.
 */
#define _GNU_SOURCE
#include "torch.h"

#include "lanes.h"
#include "shim.h"

#include "core/shim_torch.h"

#define PERMILLE    12 /* of the program's time; what the library and the recorder cost beside is about 0.8% */
#define COLD	    2 /* times what a record takes in the shim: the program finds less of its own in the caches, too */
#define TOGGLE_NS   200000ULL
#define BLOCK_NS    40000000ULL /* of steps, at least */
#define REST_MAX    1900000000ULL /* ns: at least five steps in ten seconds */
#define NO_STEPS_NS 1000000000ULL /* without any step so far: by time */
#define SLICE_NS    100000000ULL /* recorded at a time then */

static struct {
	uint32_t lock; /* never waited for: the next step or tick will do */
	bool runs, every;
	uint64_t operators; /* handle of their callback; 0: none, a rest */
	uint64_t since; /* CLOCK_MONOTONIC, ns: when operators began to be recorded, or the rest began */
	uint64_t cpu; /* CLOCK_PROCESS_CPUTIME_ID, ns: at `since` */
	uint64_t rest; /* ns: how long it is to be */
	struct torch_count base; /* calls at `since` */
	uint64_t extra; /* ns: what ranges in the rest before the block took, and the rest's begin and end */
	uint64_t cost; /* ns: of the block before the rest */
	uint64_t started; /* CLOCK_MONOTONIC, ns */
	uint64_t step; /* number of the step that is running */
	uint64_t step_began; /* 0: not known */
	uint64_t steps_in_rest;
	bool step_is_whole; /* recorded from its begin on */
} budget;

static bool take_lock(void)
{
	return !__atomic_exchange_n(&budget.lock, 1, __ATOMIC_ACQUIRE);
}

static void drop_lock(void)
{
	__atomic_store_n(&budget.lock, 0, __ATOMIC_RELEASE);
}

static uint64_t process_cpu(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/*
 * The time since `since` of which the cost may be a share: CPU time, so a program that waits is not recorded more
 * often. Steps run in one thread, so several CPUs at once count once.
 */
static uint64_t time_since(uint64_t now)
{
	uint64_t wall = now - budget.since, cpu = process_cpu() - budget.cpu;

	return cpu < wall ? cpu : wall;
}

/* The cost is that of calls from now on. */
static void set_base(uint64_t now)
{
	budget.since = now;
	budget.cpu = process_cpu();
	torch_calls__count(&budget.base);
}

static void begin_to_record(uint64_t now)
{
	set_base(now);
	budget.operators = torch_find__add(false);
	budget.extra += TOGGLE_NS + shim__now() - now;
}

static void report_rest(uint64_t now)
{
	struct shim_torch_rest *r = lane__record(LANE_TORCH, SHIM_TORCH_REST, sizeof(*r), budget.since, now);

	if (!r)
		return;
	*r = (struct shim_torch_rest){ .steps = budget.steps_in_rest, .cost = budget.cost };
	lane__commit(LANE_TORCH);
}

static void report_step(uint64_t end)
{
	struct shim_torch_step *s = lane__record(LANE_TORCH, SHIM_TORCH_STEP, sizeof(*s), budget.step_began, end);

	if (!s)
		return;
	s->step = budget.step;
	lane__commit(LANE_TORCH);
}

static uint64_t cost_since(void)
{
	struct torch_count all;

	torch_calls__count(&all);
	return (all.passed - budget.base.passed) * TORCH_PASS_NS +
	       (all.recorded - budget.base.recorded) * COLD * all.record_ns;
}

/* Begins a rest if a block cost more than its share, or ends a rest that was long enough. */
static void decide(uint64_t now, uint64_t block)
{
	uint64_t wall = now - budget.since, took, cost;

	if (!budget.operators) {
		if (!budget.every && (wall < budget.rest || (wall < REST_MAX && time_since(now) < budget.rest)))
			return;
		budget.extra += cost_since();
		report_rest(now);
		begin_to_record(now);
		return;
	}
	if (wall < block)
		return;
	took = time_since(now);
	cost = cost_since();
	/* the other costs are no reason to begin again */
	if (budget.every || cost * 1000 / PERMILLE <= took)
		return;
	budget.cost = cost + budget.extra;
	budget.rest = budget.cost * 1000 / PERMILLE - took;
	if (budget.rest > REST_MAX)
		budget.rest = REST_MAX;
	torch_library.remove(budget.operators);
	budget.operators = 0;
	/* meanwhile other threads may have begun calls that are recorded */
	set_base(shim__now());
	budget.extra = budget.since - now;
	budget.steps_in_rest = 0;
	/* of a process that is killed in it, this is all of the rest */
	report_rest(budget.since);
}

void torch_budget__step_ended(uint64_t now)
{
	if (!budget.runs || !take_lock())
		return;
	if (budget.operators && budget.step_is_whole)
		report_step(now);
	budget.steps_in_rest += !budget.operators;
	/* the first step: the program may have been idle before, which is no reason to record more */
	if (budget.operators && !budget.step_is_whole)
		set_base(now);
	else
		decide(now, BLOCK_NS);
	budget.step += !!budget.step_began;
	budget.step_began = now;
	budget.step_is_whole = budget.operators;
	drop_lock();
}

void torch_budget__tick(void)
{
	uint64_t now = shim__now();
	bool is_due = budget.operators ? now > budget.since + SLICE_NS : now > budget.since + budget.rest;

	if (!budget.runs || budget.step_began || now < budget.started + NO_STEPS_NS || !is_due || !take_lock())
		return;
	decide(now, SLICE_NS);
	drop_lock();
}

void torch_budget__set_every(bool every)
{
	budget.every = every;
}

void torch_budget__start(bool every)
{
	budget.started = shim__now();
	budget.every = every;
	budget.step = budget.step_began = budget.steps_in_rest = budget.extra = 0;
	budget.step_is_whole = false;
	begin_to_record(budget.started);
	budget.runs = true;
}

void torch_budget__stop(bool at_exit)
{
	if (!budget.runs)
		return;
	budget.runs = false;
	while (!take_lock())
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	if (!budget.operators)
		report_rest(shim__now());
	else if (!at_exit)
		torch_library.remove(budget.operators);
	budget.operators = 0;
	drop_lock();
}

/* A rest of the parent goes on in the child. PyTorch's own lock may be held by a thread that is not in the child. */
bool torch_budget__after_fork(void)
{
	bool is_changing = budget.lock;

	budget.runs &= !is_changing;
	budget.lock = 0;
	return is_changing;
}
