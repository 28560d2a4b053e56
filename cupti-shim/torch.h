/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records PyTorch's operators, backward nodes and ranges: PyTorch calls the shim at their begin and end
 * (at::addGlobalCallback of ATen/record_function.h), as it calls its own profiler. docs/torch.md says what that costs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct record_function; /* at::RecordFunction */

/* What the shim knows of the libtorch_cpu.so in this process. */
struct torch_library {
	void (*remove)(uint64_t handle); /* at::removeCallback() */
	const char *(*name)(const struct record_function *f);
	int64_t (*next_sequence)(void); /* at::sequence_number::peek(): of the thread's next backward node */
	/* offsets in at::RecordFunction */
	uint32_t scope, thread, is_operator, sequence, forward_thread;
};
extern struct torch_library torch_library;

/* torch_find.c */

/* Does the process map libtorch_cpu.so? */
bool torch_find__is_loaded(void);
/* Returns 0, -EAGAIN (no libtorch_cpu.so is loaded) or -ENOTSUP with the reason. */
int torch_find__library(const char **why);
/* at::addGlobalCallback() with the shim's functions, for ranges or for the other calls. Returns a handle. */
uint64_t torch_find__add(bool ranges);

/* torch.c; by the shim's thread */

void torch__step(uint32_t requested, bool came, bool left);
/* The process ends: hands over what there is. */
void torch__end(void);
/* Is a tracer served? */
bool torch__is_busy(void);
/* Runs in the child of a fork. */
void torch__after_fork(uint32_t inherited);
/* By any thread that PyTorch calls the shim in while nothing is recorded. */
void torch__drop_orphans(void);

/* torch_calls.c */

enum torch_scope { TORCH_SCOPE_FUNCTION, TORCH_SCOPE_BACKWARD, TORCH_SCOPE_SCRIPT, TORCH_SCOPE_USER = 7 };

/* What PyTorch calls: at::RecordFunctionCallback::StartCallback, which returns a std::unique_ptr, and EndCallback. */
void **torch_calls__begin(void **context, const struct record_function *f);
void torch_calls__end(const struct record_function *f, void *context);
/* inner: also operators that operators call */
void torch_calls__set_recording(bool records, bool inner);
/*
 * Estimated ns that PyTorch takes for a call that it passes to the shim: it makes an object for it, and calls the shim
 * twice. Measured by bench_torch_durations.
 */
#define TORCH_PASS_NS 100

/* Calls since the recording began, which other threads may change meanwhile. */
struct torch_count {
	uint64_t passed; /* all that PyTorch passed */
	uint64_t recorded;
	uint64_t record_ns; /* what the shim itself takes for a recorded one */
};
void torch_calls__count(struct torch_count *count);
/* Reports what a call takes, as measured since the recording began. */
void torch_calls__report_cost(void);
/* Calls lost since the last call because too many were within each other. */
uint64_t torch_calls__lost(void);

/* torch_budget.c: when operators are recorded, and when not, to keep within the budget */

void torch_budget__start(bool every);
void torch_budget__set_every(bool every);
/* at_exit: the callback stays */
void torch_budget__stop(bool at_exit);
/* By the shim's thread, ten times a second */
void torch_budget__tick(void);
/* An optimizer's step has ended in this thread. */
void torch_budget__step_ended(uint64_t now);
/* Returns whether a thread of the parent was adding or removing the callback, which then stays as it is. */
bool torch_budget__after_fork(void);
