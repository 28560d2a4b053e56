/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include "findings/finding.h"

/* Adds the source text of the lines that findings name, if the trace has it. 0 or negative errno. */
int quotes__add(struct finding *list, u32 n, struct trace *t);
