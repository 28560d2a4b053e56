/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What threads do in calls of CUDA: how much, by the calls, and for which of the user's code, by samples. */
#pragma once

#include "findings/finding.h"

/* Returns how many kernels the thread launched. */
u64 gpu_calls__launches(const struct finding_input *in, struct thread_key thread);
/*
 * Fills code with the user's code that most samples in calls of this function have; without one it stays as it is.
 * Returns the percentage of such samples which have this code.
 */
double gpu_calls__fill_code(const struct finding_input *in, u32 pid, const char *function, struct finding_code *code);
