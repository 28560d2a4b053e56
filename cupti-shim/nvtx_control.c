// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Begins and ends recordings of NVTX, and the call by which NVTX itself loads the shim. */
#define _GNU_SOURCE
#include "nvtx.h"

#include "shim.h"

#include <string.h>
#include <time.h>

#define REQUESTS (1U << SHIM_NVTX | 1U << SHIM_RANGES)

SHIM_EXPORT int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id));

static struct {
	bool active; /* the tables are served for a tracer */
	bool by_nvtx; /* NVTX has loaded the shim, which stays */
	uint64_t since; /* CLOCK_MONOTONIC, ns */
} control;

uint64_t nvtx__since(void)
{
	return control.since;
}

bool nvtx__is_active(void)
{
	return control.active;
}

static void report_state(enum gpu_shim_state state, const char *text)
{
	lane__report_state(LANE_NVTX, NVTX_STATE, state, text);
}

static void report_all_lost(void)
{
	uint64_t unknown, no_room, too_many, full = lanes__lost(LANE_NVTX, &too_many);

	nvtx_ranges__lost(&unknown, &no_room);
	lane__report_lost(LANE_NVTX, NVTX_DROPPED, full, NVTX_LANE_FULL);
	lane__report_lost(LANE_NVTX, NVTX_DROPPED, too_many + no_room, NVTX_TOO_MANY);
	lane__report_lost(LANE_NVTX, NVTX_DROPPED, unknown, NVTX_BEGAN_BEFORE);
}

/* What the tables, ranges and lanes had before is not this recording's. */
static void start(uint32_t requested)
{
	uint64_t ignored;

	lanes__discard(LANE_NVTX);
	lanes__lost(LANE_NVTX, &ignored);
	nvtx_ranges__lost(&ignored, &ignored);
	control.since = shim__now();
	control.active = true;
	texts__set_recording(LANE_NVTX, true);
	__atomic_store_n(&nvtx_records, requested >> SHIM_NVTX & 1, __ATOMIC_RELEASE);
	report_state(GPU_SHIM_STARTED, "");
	nvtx_tables__serve();
	nvtx_names__report_all();
}

void nvtx__stop(void)
{
	if (!control.active)
		return;
	nvtx_tables__restore();
	__atomic_store_n(&nvtx_passes_ranges, false, __ATOMIC_RELEASE);
	__atomic_store_n(&nvtx_records, false, __ATOMIC_RELEASE);
	nvtx_ranges__report_open();
	if (!control.by_nvtx)
		nvtx_ranges__forget();
	report_all_lost();
	report_state(GPU_SHIM_STOPPED, "");
	texts__set_recording(LANE_NVTX, false);
	control.active = false;
}

void nvtx__step(uint32_t requested, bool came, bool left)
{
	if (!(requested & REQUESTS)) {
		nvtx__stop();
		return;
	}
	if (!control.active) {
		start(requested);
		came = false;
	}
	if (came) {
		texts__set_recording(LANE_NVTX, true);
		report_state(GPU_SHIM_STARTED, "");
		nvtx_tables__report();
		nvtx_names__report_all();
	}
	__atomic_store_n(&nvtx_passes_ranges, requested >> SHIM_RANGES & 1, __ATOMIC_RELEASE);
	__atomic_store_n(&nvtx_records, requested >> SHIM_NVTX & 1, __ATOMIC_RELEASE);
	nvtx_tables__serve();
	report_all_lost();
	lanes__collect(LANE_NVTX);
	if (left)
		report_state(GPU_SHIM_LEFT, "");
}

/* The ranges that are open are the parent's. */
void nvtx__after_fork(uint32_t inherited)
{
	uint64_t ignored;

	nvtx_ranges__forget();
	nvtx_ranges__lost(&ignored, &ignored);
	lanes__lost(LANE_NVTX, &ignored);
	control.active = inherited & REQUESTS;
	nvtx_records = inherited >> SHIM_NVTX & 1;
	nvtx_passes_ranges = inherited >> SHIM_RANGES & 1;
	if (!control.active)
		return;
	control.since = shim__now();
	texts__set_recording(LANE_NVTX, true);
	report_state(GPU_SHIM_STARTED, "");
	nvtx_names__report_all();
}

/*
 * NVTX calls this at the first call of each library that includes it, because NVTX_INJECTION64_PATH names the shim. A
 * tracer that has just started this program gets a moment to make its request, so that the first range is recorded.
 */
int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id))
{
	uint64_t *slots[NVTX_SLOTS] = { NULL };

	if (!nvtx_tables__slots(get_table(1), slots))
		return 0;
	nvtx_tables__keep(slots[0]);
	control.by_nvtx = true;
	/* until the slots are filled, other threads wait in NVTX */
	shim__await(SHIM_NVTX);
	for (uint32_t i = 0; i < NVTX_SLOTS; i++)
		if (slots[i] && nvtx_functions[i])
			*slots[i] = (uint64_t)(uintptr_t)nvtx_functions[i];
	return 1;
}
