/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A test of chance: Student's t test with one sample. */
#pragma once

#include "core/types.h"

/*
 * Does chance explain the mean of n numbers of which `sum` and `squares` are the sums of the numbers and of their
 * squares? It does unless numbers that spread like these around 0 have such a mean less than once in a million times.
 */
bool chance__explains(u32 n, double sum, double squares);
