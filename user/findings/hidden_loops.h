/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include "findings/finding.h"

/* Notes for stack_parts__of() which code event loops call that no Python frame shows. 0 or negative errno. */
int hidden_loops__find(const struct finding_input *in);
