/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* When the cycles of `record --schedule` were active. */
#pragma once

#include "trace/reader.h"

struct cycles {
	/* Of each cycle, from the first active step of any process to the last one's end; to 0: it was not recorded */
	struct trace_window *list;
	u32 n;
};

/* 0 or negative errno. Call cycles__free in any case. */
int cycles__load(struct cycles *c, struct trace *t);
void cycles__free(struct cycles *c);
