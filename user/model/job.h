/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which processes may be ranks of one job of distributed training. A rank, a number of ranks and a name are claims of
 * the process itself, so only processes of one user and one cgroup are compared by them: another user's process, or one
 * in another container, can neither be blamed for a job nor hide one of its ranks.
 */
#pragma once

#include "model/names.h"

/*
 * Orders processes by their user and cgroup. 0: they may be of one job. Slurm has a cgroup for each task of a job step;
 * these count as one. In a merged trace cgroups do not count, as each machine has its own.
 */
int job__compare(const struct names *n, u32 a, u32 b);
