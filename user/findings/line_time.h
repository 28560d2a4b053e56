/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The time that a line of code took with all that it called, waits and CPU time together. */
#pragma once

#include "findings/finding.h"

/*
 * Adds the share of the finding's line to its detail, where it is larger than that of the wait alone: many short waits
 * are only a part of what a line costs. 0 or -ENOMEM.
 */
int line_time__add(const struct finding_input *in, struct finding *f);
