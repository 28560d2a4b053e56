/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The processes of distributed training: the steps of their loops, how long each waited for the others in collective
 * operations (collectives.h), and which rank never came to one. Ranks of NCCL belong together by their communicator.
 * Of gloo, processes of one user and cgroup (job.h) with the same number of ranks are one job. If a rank occurs twice
 * among these, each parent process is taken for the launcher of a job, and only jobs all of whose ranks were recorded
 * are compared.
 */
#pragma once

#include "model/collectives.h"
#include "model/torch_steps.h"

struct rank {
	u32 pid, tid; /* tid: of the loop, else the thread that calls collectives */
	const struct torch_loop *loop; /* the one with the longest steps; NULL: no steps were recorded */
	const struct task *task; /* NULL: not known */
	const struct names *names;
	s64 number; /* its rank, without a launcher that in its largest communicator; -1: not known */
	s32 size; /* ranks of its largest communicator of NCCL; 0: not known */
	bool has_number; /* a launcher set it */
	bool has_collectives, is_nccl;
	bool is_ambiguous; /* another process with collectives has the same rank and number of ranks */
	u32 job; /* ranks with the same number are of one job */
	u64 total_ns; /* of the loop, or from its first collective to the last if that is longer */
	/* sums over its communicators, as in struct collective_rank */
	u64 compared, last, waited_ns, delayed_ns;
	double delayed_squares;
	u64 longest_ns; /* for how long all others waited for it at one operation, longest, */
	s64 longest_at; /* and the number of that operation in its communicator */
	bool is_estimated; /* waited_ns is what its kernels took beyond the fastest: no other rank was recorded */
};

struct ranks {
	struct rank *list; /* by rank within a job; processes without collectives, then those without a rank last */
	u32 n;
	struct map by_pid; /* u32 pid -> u32 index in list */
	struct collective_ranks collectives; /* by communicator */
	struct communicator *communicators;
	u32 n_communicators;
	u64 compared; /* operations in which two ranks or more were compared */
	/* operations of processes with several process groups of gloo, and those of them that no other rank has */
	u64 in_groups, unmatched;
	bool is_ambiguous; /* ranks were not compared, as it is not known to which job each belongs */
	bool lacks_kernels; /* ranks of NCCL were compared by their calls alone */
};

/* steps must outlive it; NULL: none were recorded. 0 or negative errno; ranks__free in any case. */
int ranks__new(struct ranks **out, const struct query *q, const struct torch_steps *steps);
void ranks__free(struct ranks *r);
/*
 * Returns the rank for which all others of its job waited longest, if that is at least twice as long as for any other,
 * and more than by chance: equal ranks delay each other in turns. NULL: there is none.
 */
const struct rank *ranks__straggler(const struct ranks *r);
/*
 * Returns the rank for which all others of its job waited at one operation far longer than for any other rank at any:
 * equal ranks' longest delays are of one order. others_ns: the longest one of these. NULL: there is none.
 */
const struct rank *ranks__late(const struct ranks *r, u64 *others_ns);
/* NULL: the process has neither a rank nor collectives. */
const struct rank *ranks__of(const struct ranks *r, u32 pid);
/* Returns the communicator whose ranks waited longest for one when the trace ended; NULL: none does. */
const struct communicator *ranks__stuck(const struct ranks *r);
/* Returns the first rank that had not come to that operation; NULL: all recorded ones had. */
const struct rank *ranks__absent(const struct ranks *r, const struct communicator *c);
/*
 * Returns the phase that takes a rank with a loop longer than the others by most, and its average and theirs in ns, of
 * a step.
 */
enum torch_phase ranks__slow_phase(const struct ranks *r, const struct rank *rank, u64 *own_ns, u64 *others_ns);
