/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by live.c, which stores records, and live_sums.c, which sums them up. */
#pragma once

#include "model/live.h"
#include "model/names.h"
#include "model/stacks.h"
#include "util/recent.h"

/*
 * Frames per generation. BPF's table of frames has 65,536, so it has evicted a frame that is evicted here, and sends it
 * again.
 */
#define FRAMES_MAX    131072
#define CODES_MAX     65536
#define THREADS_MAX   32768
#define GILS_MAX      8192
#define FUNCTIONS_MAX 131072 /* per interval of the display */
#define WAITS_MAX     500000 /* per interval of the display */
#define DEPTH_MAX     512
#define UNKNOWN	      0xffffffffu /* instead of a function's id */

struct frame {
	u32 caller, code;
	u8 kind;
};

struct code {
	char text[160]; /* name of the function, as shown */
	bool users; /* it is the user's own code */
	bool package; /* it is the code of an installed package */
	u8 rule; /* of live__new's wait_rule */
	u8 lock; /* enum lock_kind of a wait in this native function */
};

struct wait {
	u64 gil, start, end;
	u32 pid, tid, number, stack, holder_stack;
	u32 holder; /* the thread that held the GIL at the end, or dropped it */
	bool timeout;
};

struct gil_key {
	u64 gil;
	u32 pid, unused;
};

struct drop_key {
	u32 waiter, number;
};

struct thread {
	u32 last_holder; /* function that held the GIL during the thread's last wait */
	u32 stack; /* stack of its last wait that has one; the next wait with the same stack is part of the same attempt */
	u32 hold_stack; /* stack of its last hold that has one */
	u64 lock_end; /* end of its last wait for a lock */
	u32 lock_ended_by; /* function that caused most of that wait; UNKNOWN: not known */
};

struct pair_key {
	u32 pid, holder, waiter; /* functions */
};

struct sum {
	u64 waits, ns;
};

struct function {
	u64 self_ns, total_ns;
	u64 last; /* number of the last sample that counted it, so that recursion counts once */
};

/* Time of a process in one activity: of a thread (tid), in a function (code), or caused by another function (by) */
struct time_key {
	u32 pid;
	u8 activity, rule, lock, unused; /* as in struct live_process */
	u32 tid, code, ended_by;
};

struct wake_key {
	u32 tid, unused;
	u64 since; /* when the woken thread left the CPU */
};

struct waker {
	u32 tid, stack;
};

/* What a stack shows of a wait */
struct site {
	u32 code; /* function of the user's own code; UNKNOWN: none */
	u8 rule, lock;
};

struct live {
	const struct schema *schema;
	struct names *names;
	struct recent frames, codes; /* by id */
	struct recent gil_numbers; /* struct gil_key -> u32, from 1 */
	struct recent gil_counts; /* pid -> u32 */
	struct map drops, old_drops; /* struct drop_key -> u32 stack; of this and the previous interval */
	struct recent threads; /* tid -> struct thread */
	struct map functions; /* code -> struct function */
	struct map on_cpu, off_cpu; /* struct time_key -> u64 ns: on a CPU, waiting */
	struct map sites; /* u32 stack -> struct site */
	struct map wakes, old_wakes; /* struct wake_key -> struct waker; of this and the previous interval */
	struct map throttles; /* u32 pid -> struct throttle */
	u8 (*wait_rule)(const struct stack_frame *f);
	struct wait *waits;
	u32 n_waits;
	u64 waits_lost;
	u64 sample, samples, samples_ns;
	u64 slices_ns, pauses_ns; /* of waits for the GIL */
	u64 unmeasured_ns; /* of waits with a stack */
	u64 last_cut;
	struct live_view view;
};

/* Sums up the records since the last cut in l->view; weight: the number of waits that each represents. 0 or -ENOMEM. */
int live__sum_gils(struct live *l, double weight);
int live__sum_pairs(struct live *l, double weight);
int live__sum_functions(struct live *l);
int live__sum_processes(struct live *l);
/* Returns the innermost function that is the user's own code, else the innermost one; UNKNOWN: none. */
u32 live__user_code(struct live *l, u32 stack);
/* Marks the frames of a stack as used, so that they are stored for as long as BPF does not send them again. */
void live__use_stack(struct live *l, u32 stack);
/* Adds time; beyond FUNCTIONS_MAX entries, only to those that exist. 0 or -ENOMEM. */
int live__add_time(struct map *times, struct time_key key, u64 ns);

/* live_waits.c: handlers of records. 0 or -ENOMEM. */
int live__on_off(struct live *l, const struct view *v);
int live__on_wake(struct live *l, const struct view *v);
int live__on_throttle(struct live *l, const struct view *v);
