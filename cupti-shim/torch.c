// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Begins and ends recordings of PyTorch. */
#define _GNU_SOURCE
#include "torch.h"

#include "lanes.h"
#include "shim.h"
#include "texts.h"

#include "core/shim_torch.h"

#include <errno.h>
#include <string.h>

#define REQUESTS (1U << SHIM_TORCH)

static struct {
	bool is_busy; /* a tracer is served */
	uint64_t ranges; /* handle of the callback for ranges; 0: none */
	const char *why; /* PyTorch can't be recorded, which was reported */
	bool is_orphan; /* in a forked child that is not recorded: the callbacks are the parent's */
} control;

bool torch__is_busy(void)
{
	return control.is_busy;
}

static void report_state(enum gpu_shim_state state, const char *text)
{
	lane__report_state(LANE_TORCH, SHIM_TORCH_STATE, state, text);
}

static void report_all_lost(void)
{
	uint64_t too_many, full = lanes__lost(LANE_TORCH, &too_many);

	lane__report_lost(LANE_TORCH, SHIM_TORCH_DROPPED, full, TORCH_LANE_FULL);
	lane__report_lost(LANE_TORCH, SHIM_TORCH_DROPPED, too_many + torch_calls__lost(), TORCH_TOO_MANY);
}

static void remove_callbacks(void)
{
	torch_budget__stop(false);
	torch_calls__set_recording(false, false);
	if (control.ranges)
		torch_library.remove(control.ranges);
	control.ranges = 0;
}

/* Not in the handler of fork(), which may do little: when PyTorch calls for the first time. */
void torch__drop_orphans(void)
{
	if (__atomic_exchange_n(&control.is_orphan, false, __ATOMIC_RELAXED))
		remove_callbacks();
}

/* Until the library is loaded there is nothing to do. */
static void add_callback(uint32_t requested)
{
	const char *why = NULL;
	int err;

	if (control.ranges || control.why)
		return;
	err = torch_find__library(&why);
	if (err == -EAGAIN)
		return;
	if (err) {
		control.why = why;
		report_state(GPU_SHIM_REFUSED, why);
		return;
	}
	torch_calls__set_recording(true, requested >> SHIM_TORCH_INNER & 1);
	control.ranges = torch_find__add(true);
	torch_budget__start(requested >> SHIM_TORCH_EVERY & 1);
}

static void start(uint32_t requested)
{
	uint64_t ignored;

	torch__drop_orphans();
	lanes__discard(LANE_TORCH);
	lanes__lost(LANE_TORCH, &ignored);
	torch_calls__lost();
	control.why = NULL;
	control.is_busy = true;
	texts__set_recording(LANE_TORCH, true);
	report_state(GPU_SHIM_STARTED, "");
	add_callback(requested);
}

/* A call that is open now may call the shim once more at its end, which then does nothing. */
static void stop(void)
{
	if (!control.is_busy)
		return;
	remove_callbacks();
	report_all_lost();
	torch_calls__report_cost();
	report_state(GPU_SHIM_STOPPED, "");
	texts__set_recording(LANE_TORCH, false);
	control.is_busy = false;
}

void torch__step(uint32_t requested, bool came, bool left)
{
	if (!(requested & REQUESTS)) {
		stop();
		return;
	}
	if (!control.is_busy) {
		start(requested);
		came = false;
	}
	if (came) {
		texts__set_recording(LANE_TORCH, true);
		report_state(GPU_SHIM_STARTED, "");
	}
	add_callback(requested);
	if (control.ranges) {
		torch_calls__set_recording(true, requested >> SHIM_TORCH_INNER & 1);
		torch_budget__set_every(requested >> SHIM_TORCH_EVERY & 1);
		torch_budget__tick();
	}
	report_all_lost();
	lanes__collect(LANE_TORCH);
	if (left) {
		torch_calls__report_cost();
		report_state(GPU_SHIM_LEFT, "");
	}
}

/* PyTorch has destroyed its list of callbacks. */
void torch__end(void)
{
	if (!control.is_busy)
		return;
	torch_budget__stop(true);
	torch_calls__set_recording(false, false);
	report_all_lost();
	torch_calls__report_cost();
	report_state(GPU_SHIM_STOPPED, "");
	control.is_busy = false;
}

/* The callbacks are there in the child, too; where another thread was changing them, they can't be removed. */
void torch__after_fork(uint32_t inherited)
{
	bool is_changing = torch_budget__after_fork();
	uint64_t ignored;

	torch_calls__set_recording(false, false);
	lanes__lost(LANE_TORCH, &ignored);
	torch_calls__lost();
	control.is_busy = inherited & REQUESTS;
	if (!control.is_busy) {
		control.is_orphan = control.ranges && !is_changing;
		return;
	}
	texts__set_recording(LANE_TORCH, true);
	report_state(GPU_SHIM_STARTED, "");
	if (control.ranges)
		torch_calls__set_recording(true, inherited >> SHIM_TORCH_INNER & 1);
}
