/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Event loops, such as asyncio's, that a callback or coroutine holds up. */
#pragma once

#include "findings/group.h"

/* A wait within a callback: adds how often it held up the loop, and ranks it as one that delays others. */
void loop__add_waits(const struct finding_input *in, const struct group *g, u32 stack, struct finding *f);
/*
 * Computation within a callback, which took most of the process's CPU time if is_main: adds how often it held up the
 * loop.
 */
void loop__add_computation(const struct finding_input *in, u32 stack, bool is_main, struct finding *f);
