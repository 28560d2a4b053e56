/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Training steps, and what their time was. Steps are those that the recording counted (`record --step`, --schedule) or
 * that the program marks with ranges "ProfilerStep#N"; without these a step of a thread goes from the end of one call
 * of its optimizer to the end of the next. Where no optimizer was recorded, as in inference, a step begins with each
 * request to the data loader.
 *
 * Backward passes are recognised by the sequence numbers of their nodes: a pass begins with the node that was made
 * last, so that a node of that number or a higher one begins the next pass. Operators between the phase before a
 * backward pass and that pass are its forward pass.
 */
#pragma once

#include "model/torch.h"

enum torch_phase {
	PHASE_DATA, /* waited for the data loader */
	PHASE_FORWARD,
	PHASE_BACKWARD,
	PHASE_OPTIMIZER, /* stepped, zeroed gradients, and the operators between the backward pass and the step */
	PHASE_COLLECTIVE, /* waited for a collective of torch.distributed */
	PHASE_OTHER, /* none of these: other code of the program */
	PHASES
};

struct torch_step {
	u64 start, end; /* ns */
	u64 number; /* as the recording or the program counts steps; else from 1 on */
	u64 phase_ns[PHASES]; /* they add up to the step */
	u64 collectives; /* waits for a collective; one within another does not count */
	u64 calls; /* operators, at any depth, also those that backward nodes call in the engine's threads */
	u64 operators, operators_ns; /* of the forward pass: operators that are in no other, and the time in them */
	u64 distances,
		between_ns; /* times between two of these that are short, and their sum without the cost of probes */
	u32 first_gap, n_gaps; /* for torch_forward.c */
};

/* What a step spent in one name, without the calls within it */
struct torch_part {
	u32 name; /* for torch__name() */
	u64 calls, self_ns;
};

/*
 * The calls in all steps of an operator that copies tensors or reads their values on the host, without the calls that
 * another such operator made
 */
#define TORCH_COPIES 6
struct torch_copies {
	u64 calls, ns; /* ns: with the calls within */
};

/*
 * Operators that the tensors' device lacks: PyTorch's fallback copies the tensors to the CPU by aten::_to_cpu, computes
 * there and copies the results back.
 */
struct torch_fallback {
	u64 calls, ns; /* of the operator; ns: with the calls within */
	u64 last; /* start of the last call */
};

/* The steps of a thread */
struct torch_loop {
	u32 pid, tid;
	u32 *engines, n_engines; /* other threads of its process that only evaluate backward nodes */
	bool is_marked; /* the recording or the program marked its steps */
	bool by_optimizer; /* false: by the data loader, or is_marked */
	char boundary[104]; /* the range that ends its steps: "Optimizer.step#SGD.step" */
	char loader[104]; /* the range of its data loader; "": none */
	u64 batches; /* requests to its data loader */
	struct torch_step *steps; /* by time */
	u32 n;
	u64 median_ns; /* of a step */
	u64 phase_median_ns[PHASES];
	u64 phase_total_ns[PHASES], total_ns;
	struct map fallbacks; /* u32 name of the operator -> struct torch_fallback */
	u64 probes_ns; /* of total_ns: what the probes of calls on its thread took */
	u32 slowest, typical; /* indices of the longest step, and of one as long as the median */
	struct torch_copies copies[TORCH_COPIES]; /* by operator, for torch_copies__name() */
	struct map parts[2]; /* u32 name -> struct torch_part: of the slowest and of the typical step */
};

struct torch_steps {
	struct torch *torch; /* has the names */
	struct torch_loop *loops; /* by total time, the longest first */
	u32 n;
	u64 dropped; /* phases that were not read, as there were too many */
	u32 tried; /* threads that have a range which may end steps */
	u32 ignored; /* such threads that were not tried, as there were too many */
};

/* 0 or negative errno; torch_steps__free in any case. */
int torch_steps__new(struct torch_steps **out, const struct query *q);
void torch_steps__free(struct torch_steps *s);
/* Did the step take 1.5 times the median or longer? */
bool torch_loop__is_slow(const struct torch_loop *l, u32 step);
/* Returns "aten::_to_copy", .. */
const char *torch_copies__name(u32 i);
/* Returns "data loading", .. */
const char *torch_phase__name(enum torch_phase phase);
/* Returns the phase of the longest step that took most more than its median, and how much more. */
enum torch_phase torch_loop__slow_phase(const struct torch_loop *l, u64 *more_ns);
/* Returns the name whose own time in the longest step is most above that in a typical one; NULL: there is none. */
const struct torch_part *torch_loop__slow_part(const struct torch_loop *l, u64 *more_ns);
