/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pools of threads, such as those of executors, of which no thread is free: tasks wait in their queue. */
#pragma once

#include "findings/finding.h"

/*
 * If all threads of the pool that runs the finding's code, or that computes the results for which it waits, were busy,
 * adds that tasks wait for a free thread. 0 or -ENOMEM.
 */
int thread_pool__add(const struct finding_input *in, struct finding *f);
