/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A shell pattern, compiled to tables: BPF programs and the worker match it with one step for each character. */
#pragma once

#include "types.h"

#define GLOB_STEPS 63

/*
 * An automaton of at most GLOB_STEPS states with one bit each: the states that a character can advance, the states that
 * every character leaves unchanged ('*'), and the final state. Bit 0 is the initial state.
 */
struct glob {
	u64 accept[256];
	u64 loops;
	u64 end;
};

#define GLOB_BEGIN 1 /* the state before the first character */

static inline u64 glob__step(const struct glob *g, u64 state, u8 c)
{
	return (state & g->accept[c]) << 1 | (state & g->loops);
}

static inline bool glob__ends(const struct glob *g, u64 state)
{
	return state & g->end;
}
