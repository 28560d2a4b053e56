// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Keeps what recording PyTorch costs within a share of the program's time: after some recorded steps of training the
 * callback for operators is removed for as long as their cost requires, and added again when a step ends. Without it
 * PyTorch calls the shim for ranges alone, of which there are few. In a program without steps, such as inference, the
 * shim's thread does the same by time.
 *
 * The cost is estimated: CALL_NS for each call that PyTorch passes to the shim, RECORD_NS more for one that is recorded
 * and handed over. docs/torch.md has the measurement.
 */
#define _GNU_SOURCE
#include "torch.h"

#include "lanes.h"
#include "shim.h"

#include "core/shim_torch.h"

#define PERCENT	    2
#define CALL_NS	    120
#define RECORD_NS   400
#define REST_MAX    1900000000ULL /* ns: at least five steps in ten seconds */
#define NO_STEPS_NS 1000000000ULL /* without any step so far: by time */
#define SLICE_NS    100000000ULL /* recorded at a time then */

static struct {
	uint32_t lock; /* never waited for: the next step or tick will do */
	bool runs, every;
	uint64_t operators; /* handle of their callback; 0: none, a rest */
	uint64_t since; /* CLOCK_MONOTONIC, ns: when operators began to be recorded, or the rest began */
	uint64_t rest; /* ns: how long it is to be */
	uint64_t passed, recorded; /* calls at `since` */
	uint64_t cost; /* ns: of the calls before the rest */
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

/* The cost is that of calls from now on. */
static void set_base(uint64_t now)
{
	budget.since = now;
	torch_calls__count(&budget.passed, &budget.recorded);
}

static void begin_to_record(uint64_t now)
{
	set_base(now);
	budget.operators = torch_find__add(false);
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
	uint64_t passed, recorded;

	torch_calls__count(&passed, &recorded);
	return (passed - budget.passed) * CALL_NS + (recorded - budget.recorded) * RECORD_NS;
}

/* Begins a rest if what was recorded cost more than its share, or ends one that was long enough. */
static void decide(uint64_t now)
{
	uint64_t took = now - budget.since;

	if (!budget.operators) {
		if (took < budget.rest && !budget.every)
			return;
		report_rest(now);
		begin_to_record(now);
		return;
	}
	budget.cost = cost_since();
	budget.rest = budget.cost * 100 / PERCENT;
	if (budget.every || budget.rest <= took)
		return;
	budget.rest -= took;
	if (budget.rest > REST_MAX)
		budget.rest = REST_MAX;
	torch_library.remove(budget.operators);
	budget.operators = 0;
	/* meanwhile other threads may have begun calls that are recorded */
	budget.since = shim__now();
	budget.steps_in_rest = 0;
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
		decide(now);
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
	decide(now);
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
	budget.step = budget.step_began = budget.steps_in_rest = 0;
	budget.step_is_whole = false;
	begin_to_record(budget.started);
	budget.runs = true;
}

void torch_budget__stop(void)
{
	if (!budget.runs)
		return;
	budget.runs = false;
	while (!take_lock())
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	if (budget.operators)
		torch_library.remove(budget.operators);
	else
		report_rest(shim__now());
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
