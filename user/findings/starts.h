/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes that start many others, or many threads. */
#pragma once

#include "findings/finding.h"

/*
 * Adds to the first finding of such a process, or of one that it started, how many it started, and which line starts
 * threads. 0 or negative errno
 */
int starts__add(const struct finding_input *in, struct finding *list, u32 n);
