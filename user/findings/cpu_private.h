/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by cpu.c, which finds why threads waited for a CPU, and cpu_users.c, which finds who had the CPUs meanwhile.
 */
#pragma once

#include "findings/group.h"
#include "model/cpu_sums.h"

/*
 * Adds findings on processes whose samples show at least twice the time on CPUs that the scheduler's events show: these
 * were not recorded, or the threads ran on without one. pids gets the numbers of these processes (u32 -> u8). 0 or
 * -ENOMEM.
 */
int cpu__add_sampled(const struct finding_input *in, struct map *pids, struct findings *out);
/* Adds the process that had the CPUs for which the group's threads waited, and whether the kernel prefers it. */
void cpu__add_users(const struct finding_input *in, const struct group *g, struct finding *f);
