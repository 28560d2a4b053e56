// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Begins and ends recordings of calls of Python functions, and records them. */
#define _GNU_SOURCE
#include "libc.h"
#include "functions.h"
#include "shim.h"
#include "texts.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	bool records; /* calls are recorded */
	bool is_busy; /* a tracer is served, or calls are still intercepted */
} state;

bool functions__is_active(void)
{
	return __atomic_load_n(&state.records, __ATOMIC_RELAXED);
}

bool functions__is_busy(void)
{
	return __atomic_load_n(&state.is_busy, __ATOMIC_RELAXED);
}

uint64_t functions__text(const char *text)
{
	return *text ? text__id(LANE_FUNCTIONS, FUNCTION_TEXT, text, strlen(text)) : 0;
}

void functions__record(const struct function *f, uint64_t class, uint64_t shapes, uint64_t start, bool failed)
{
	uint64_t end = shim__now(), name = class ? class : f->label;
	struct shim_function_call *c;

	/* the call began in a recording that has ended */
	if (!functions__is_active())
		return;
	text__use(LANE_FUNCTIONS, FUNCTION_TEXT, name);
	text__use(LANE_FUNCTIONS, FUNCTION_TEXT, f->domain_id);
	text__use(LANE_FUNCTIONS, FUNCTION_TEXT, shapes);
	c = lane__record(LANE_FUNCTIONS, FUNCTION_CALL, sizeof(*c), start, end);
	if (!c)
		return;
	*c = (struct shim_function_call){
		.name = name,
		.domain = f->domain_id,
		.shapes = shapes,
		.color = f->colour,
		.failed = failed,
		.generator = f->is_generator,
	};
	lane__commit(LANE_FUNCTIONS);
}

void functions__report(const struct function *f, enum function_state is, const char *why)
{
	struct shim_function_named body = { .name = f->label, .state = is };

	text__use(LANE_FUNCTIONS, FUNCTION_TEXT, f->label);
	why = why ? why : "";
	lane__record_text(LANE_FUNCTIONS, FUNCTION_NAMED, &body, sizeof(body), why, strlen(why));
}

static void report_state(enum gpu_shim_state state, const char *text)
{
	lane__report_state(LANE_FUNCTIONS, FUNCTION_STATE, state, text);
}

void functions__report_python(bool refused, const char *why)
{
	report_state(refused ? GPU_SHIM_REFUSED : GPU_SHIM_WAITING, why);
}

static void report_all_lost(void)
{
	uint64_t too_many, full = lanes__lost(LANE_FUNCTIONS, &too_many);

	lane__report_lost(LANE_FUNCTIONS, FUNCTION_DROPPED, full, FUNCTION_LANE_FULL);
	lane__report_lost(LANE_FUNCTIONS, FUNCTION_DROPPED, too_many, FUNCTION_TOO_MANY);
}

/* What the lanes had before is not this recording's. */
static void start(void)
{
	uint64_t ignored;

	if (!state.is_busy) {
		lanes__discard(LANE_FUNCTIONS);
		lanes__lost(LANE_FUNCTIONS, &ignored);
	}
	texts__set_recording(LANE_FUNCTIONS, true);
	__atomic_store_n(&state.is_busy, true, __ATOMIC_RELAXED);
	__atomic_store_n(&state.records, true, __ATOMIC_RELAXED);
	report_state(GPU_SHIM_STARTED, "");
	functions_thread__request(true, true);
}

void functions__stopped(void)
{
	report_all_lost();
	report_state(GPU_SHIM_STOPPED, "");
	texts__set_recording(LANE_FUNCTIONS, false);
	__atomic_store_n(&state.is_busy, false, __ATOMIC_RELAXED);
}

static void stop(void)
{
	if (!functions__is_active())
		return;
	__atomic_store_n(&state.records, false, __ATOMIC_RELAXED);
	/* the thread reports the end when all is as it was */
	if (!functions_thread__request(false, false))
		functions__stopped();
}

void functions__step(uint32_t requested, bool came, bool left)
{
	if (!(requested >> SHIM_FUNCTIONS & 1)) {
		stop();
		return;
	}
	if (!functions__is_active()) {
		start();
		came = false;
	}
	if (came) {
		texts__set_recording(LANE_FUNCTIONS, true);
		report_state(GPU_SHIM_STARTED, "");
		functions_thread__request(true, true);
	}
	report_all_lost();
	lanes__flush(LANE_FUNCTIONS);
	if (left)
		report_state(GPU_SHIM_LEFT, "");
}

void functions__end(void)
{
	if (!functions__is_busy())
		return;
	__atomic_store_n(&state.records, false, __ATOMIC_RELAXED);
	functions__stopped();
}

/* Calls stay intercepted in the child until it executes another program, and are recorded if a tracer requests it. */
void functions__after_fork(uint32_t inherited)
{
	uint64_t ignored;

	state.records = state.is_busy = state.records && inherited >> SHIM_FUNCTIONS & 1;
	functions_thread__after_fork();
	lanes__lost(LANE_FUNCTIONS, &ignored);
	if (!state.records)
		return;
	texts__set_recording(LANE_FUNCTIONS, true);
	report_state(GPU_SHIM_STARTED, "");
}

bool functions__is_launched(void)
{
	return getenv("SONDE_FUNCTIONS") && dlsym(RTLD_DEFAULT, "Py_IsInitialized");
}

bool functions__is_command(void)
{
	return functions__is_launched() && shim__setting("SONDE_FUNCTIONS_PID", 0) == (uint64_t)getpid();
}
