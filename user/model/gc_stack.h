/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CPython's garbage collector, by the names of its functions (Modules/gcmodule.c, Python/gc.c and
 * Python/gc_free_threading.c of 3.8 to 3.15).
 */
#pragma once

#include "model/stacks.h"

/* Is the native frame one of the collector? */
bool gc_stack__is_collector(const struct stack_frame *f);
