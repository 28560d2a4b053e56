/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PyTorch's calls of a trace as a tree for each thread: operators, backward nodes and named ranges, with the time that
 * is their own, the memory that they allocated and the work that they launched.
 *
 * Durations are without what the probes took: a call's duration contains the cost of its own probes and of all probes
 * within it. The recording measured what the programs within each call took, and what a trap takes (event torch_cost).
 *
 * As torch.profiler does, a call whose only child has the same name is one call with it, so that an operator that calls
 * its own overload counts once.
 */
#pragma once

#include "model/query.h"
#include "model/torch_rests.h"
#include "util/map.h"

enum torch_kind { TORCH_OPERATOR, TORCH_NODE, TORCH_RANGE };

/* The floating-point operations of a call */
enum torch_flops {
	FLOPS_NONE, /* it is of none of the operators whose operations are counted */
	FLOPS_UNKNOWN, /* it is of one of these, but the sizes of its tensors are not recorded */
	FLOPS_COUNTED,
};

struct torch_span {
	enum torch_kind kind;
	u32 pid, tid;
	u32 name; /* for torch__name() */
	u32 stack; /* of Python at the call; 0: not known */
	u32 shapes; /* number of the text of its tensors' sizes, for torch__shapes(); 0: not known */
	bool is_open; /* had not ended when the trace did */
	bool is_unwound; /* an exception left it */
	u64 start, end; /* as measured */
	u64 total_ns, self_ns; /* without the cost of probes; self_ns is also without the calls within it */
	u64 outer_ns; /* of a call that is in no other: its part of the selected time, without calls within it that were counted so before */
	u64 inner; /* calls within it, at any depth */
	u64 hits; /* of other probes of the family within it, at any depth */
	u64 entry_ns; /* what the program at its entry took before its start */
	u64 programs_ns; /* what the programs of the probes within it took, at any depth */
	u64 probes_ns; /* what its own probes take, in it and around it; 0 if the recording did not measure that */
	u64 children; /* calls directly within it */
	s64 sequence; /* of an operator: that of the first node that it made; of a node: its own; -1: none */
	u64 made_by; /* of a node: PyTorch's number of the thread that made it, of an operator: of its own; 0: not known */
	s64 bytes, self_bytes; /* allocated less freed */
	u64 device_ns, self_device_ns; /* of the work on GPUs that it launched */
	enum torch_flops has_flops;
	u64 flops; /* by its own tensors or, if these do not give it, of the calls within it */
	u64 outer_flops; /* of a call that is in no other: flops without those of calls within it that were counted so before */
};

struct torch;

/* names and the trace of q must outlive it. 0 or negative errno; call torch__free in any case. */
int torch__new(struct torch **out, const struct query *q);
void torch__free(struct torch *t);
/*
 * Calls fn for each call of the selected time, processes and threads, once the call around it is known (parent; NULL:
 * there is none). Calls of one parent are passed in order of their ends, and before their parent. Returns 0 or a
 * negative errno, of fn too.
 */
int torch__read(struct torch *t, int (*fn)(const struct torch_span *c, const struct torch_span *parent, void *arg),
		void *arg);
/* Returns the text of a name's number; valid until torch__free. */
const char *torch__name(const struct torch *t, u32 name);
/* Returns "[[64, 784], [784, 128]]"; NULL: not known. */
const char *torch__shapes(const struct torch *t, u32 shapes);

/* What the figures cover */
struct torch_coverage {
	u64 calls, nodes, ranges;
	u64 merged; /* calls that count as one with the call around them */
	u64 open, unwound;
	u64 unnamed; /* calls whose name the trace lacks */
	bool is_corrected; /* the recording measured the cost of its probes */
	u64 outside_ns; /* what the probes of a call take before and after it */
	u64 launches_dropped; /* whose work on GPUs belongs to no call, as there were too many */
	u64 cost_ns; /* what was subtracted from the calls that are in no other */
	bool has_shapes, has_memory, has_device;
	u64 in_rests; /* calls and ranges that are left out because the library recorded only ranges meanwhile */
};
const struct torch_coverage *torch__coverage(const struct torch *t);
/* After torch__read() */
const struct torch_rests *torch__rests(const struct torch *t);
