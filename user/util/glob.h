/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Compiles shell patterns for core/glob.h: '*', '?', '[a-z]', '[!a-z]' and '\' as in fnmatch(3). */
#pragma once

#include "core/glob.h"

/* Returns 0; -E2BIG: the pattern matches only texts of more than `max` characters, at most GLOB_STEPS. */
int glob__compile(struct glob *g, const char *pattern, u32 max);
