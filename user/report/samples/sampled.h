/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sums the records of family sample by stack, for reports python, lines and stacks. */
#pragma once

#include "model/stacks.h"
#include "report/report.h"
#include "util/map.h"

struct sampled_weight {
	u64 samples, cpu_ns; /* samples of the clock */
	u64 gil_ns, no_gil_ns; /* of cpu_ns: with the GIL, and known to be without it */
	u64 kernel_ns; /* of cpu_ns: in the kernel */
	u64 waits, off_ns; /* off the CPU */
	u64 estimated_ns; /* of off_ns: the stack is that of another wait */
};

struct sampled {
	struct stacks *stacks;
	struct map by_stack; /* u32 -> struct sampled_weight */
	struct sampled_weight total;
	u64 period, threshold, ticks, missed; /* of the recording as a whole */
};

/* Returns 0 or negative errno; call sampled__free in any case. */
int sampled__read(struct sampled *s, const struct query *args);
void sampled__free(struct sampled *s);
void sampled__add(struct sampled_weight *to, const struct sampled_weight *w);
/* A function, or a line of one */
struct sampled_code {
	struct sampled_weight self, total;
	u64 native_ns; /* the part of self that is in C */
	u32 frame; /* one of its frames, for its name */
	u32 last; /* number of the last stack for which it was counted */
};

struct sampled_code_key {
	u32 code, line; /* line 0: the function */
};

/*
 * Fills codes (struct sampled_code_key -> struct sampled_code) and the sum of stacks without Python. without_python
 * NULL: codes get the native functions of such stacks. 0 or -ENOMEM.
 */
int sampled__by_code(struct sampled *s, bool by_line, struct map *codes, struct sampled_weight *without_python);
/* Adds notes on the limits of the figures; returns false, after adding a finding, if there are no samples. */
bool sampled__add_notes(const struct sampled *s, const struct query *args, struct report_output *out);
