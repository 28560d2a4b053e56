/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a process spent in imports of modules, by its samples. */
#pragma once

#include "findings/finding.h"

struct imported {
	u64 sampled_ns, all_ns; /* of samples: below importlib, all of the process */
	char module[64]; /* that took most of it */
	u64 module_ns; /* 0: none was running */
	u32 stack; /* one with the line of the user's code that has most samples */
};

/* 0 or -ENOMEM */
int imported__of(struct imported *imported, const struct finding_input *in, u32 pid);
/* Sets the threads that import, the time that they do so and all their time. 0 or -ENOMEM */
int imported__add_times(const struct finding_input *in, struct finding *f);
/* Makes it a finding about imports. */
void imported__complete(const struct finding_input *in, const struct imported *imported, struct finding *f);
