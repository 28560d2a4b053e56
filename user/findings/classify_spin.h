/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pools whose threads spin for a while before they sleep, such as OpenMP's and Rayon's: they run, and do nothing. */
#pragma once

#include "findings/finding.h"

/* Returns whether a thread that runs with this stack spins until there is work. */
bool classify_spin__is_idle(const struct stacks *stacks, u32 stack);
/* Makes the time on CPUs of threads that mostly spin idle time. 0 or -ENOMEM. */
int classify_spin__threads(const struct finding_input *in);
