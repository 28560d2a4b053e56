/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ranks of distributed training among the processes of a trace: those with a thread in a collective operation, or
 * in the library that carries it out. Ranks of one job have the same user and cgroup (model/job.h) and number of ranks.
 * If the launcher set no number, or a process inherited that of its parent, children of one parent that run the same
 * code are one job.
 */
#pragma once

#include "findings/finding.h"
#include "findings/rank_time.h"

struct job_rank {
	u32 pid;
	u32 job; /* from 0 on */
	s64 number; /* -1: not known */
	struct thread_key thread; /* the one that waits longest in collectives, else the main thread */
	const struct rank_waits *waits; /* its waits; NULL: none */
	u64 wall_ns; /* its time */
	u32 ppid, world_size, claimed; /* world_size 0: no launcher set its number; `claimed`: the number that it set */
	u64 entry; /* hash of the outermost function of the program in which the thread waits or computes */
	bool is_shared; /* another process of its job has the same number */
	u32 samples; /* number of the thread's last sample in the profile plus one, which leads to the others; 0: none */
};

struct job_ranks {
	struct job_rank *list; /* by job, and by number within a job */
	u32 n;
	struct map by_pid; /* u32 pid -> u32 index */
	u32 *next_sample; /* by sample, as job_rank.samples: the sample of the same thread before it */
};

/* 0 or -ENOMEM; job_ranks__free in any case. */
int job_ranks__list(struct job_ranks *r, const struct finding_input *in);
void job_ranks__free(struct job_ranks *r);
/* Returns the rank that the process is; NULL: it is none. */
const struct job_rank *job_ranks__of(const struct job_ranks *r, u32 pid);
/* Writes "rank 1 (train.py 4711)", or "a rank (train.py 4711)" if its number is not known. Returns buf. */
char *job_rank__label(const struct job_rank *rank, const struct names *names, char *buf, size_t size);
