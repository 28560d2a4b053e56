/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks in CPython's garbage collector, by the names of its functions (Modules/gcmodule.c, Python/gc.c and
 * Python/gc_free_threading.c of 3.8 to 3.15).
 */
#pragma once

#include "model/stacks.h"

/* Is the stack's innermost code the collector, and not Python code that it called, such as a finalizer? */
bool gc_stack__collects(const struct stacks *s, u32 stack);
