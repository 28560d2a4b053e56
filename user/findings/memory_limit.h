/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Limits of memory of cgroups: at the limit the kernel frees pages, and what is needed again is read from the disk. */
#pragma once

#include "findings/finding.h"

/* Initialises the map, and reads into it which limits processes reached. 0 or negative errno; free it in any case. */
int memory_limits__read(struct map *limits, const struct query *q);
/* If a limit of the finding's process was reached often, adds that. Returns whether it was. */
bool memory_limit__add(const struct finding_input *in, struct finding *f);
