/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Classifies waits of which the trace has no stack, because they were too short, by those of which it has one. */
#pragma once

#include "findings/finding.h"

/*
 * Waits that are too short for a stack get the kind and code of most of the thread's waits with one, if these are more
 * than half; waits for a known futex, of those for the same futex.
 * Call it when all other cells are classified. Returns 0 or -ENOMEM.
 */
int classify_short__waits(const struct finding_input *in);
