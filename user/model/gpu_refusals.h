/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Why the shim recorded no device times in a process (event gpu_shim), and what helps. */
#pragma once

#include "model/query.h"
#include "util/map.h"

struct gpu_refusals {
	struct map reasons; /* u32 pid -> struct gpu_refusal */
};

struct gpu_refusal {
	bool is_refused; /* false: it has recorded since */
	char why[256]; /* "the GPU can't be traced: CUPTI says CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)"; untrusted */
};

/* 0 or negative errno; free in any case */
int gpu_refusals__read(struct gpu_refusals *r, const struct query *q);
void gpu_refusals__free(struct gpu_refusals *r);
/* Returns why there are no device times of the process; NULL: there are, or it is not known. */
const char *gpu_refusals__of(const struct gpu_refusals *r, u32 pid);
/* Returns a sentence on what to do; "": nothing is known, or the reason itself says it. */
const char *gpu_refusal__advice(const char *why);
