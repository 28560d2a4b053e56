/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers that look random and are the same in each run. */
#pragma once

#include "core/types.h"

static u32 seed = 1;

static inline u32 pick(u32 n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}
