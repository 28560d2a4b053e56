/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The functions in which CPython collects garbage, of interpreters without symbols, so that samples in them can be
 * named. Sources: Modules/gcmodule.c and Python/gc.c of 3.8 to 3.15.
 */
#pragma once

#include "elf/elf.h"

/* The name that they get: that of 3.9 and later. */
#define COLLECTOR_NAME "gc_collect_main"

#define COLLECTOR_FUNCTIONS 8

struct collector {
	u64 functions[COLLECTOR_FUNCTIONS]; /* addresses of their starts: compilers copy and split functions */
	u32 n;
};

/* Call it for CPython only: a file that exports PyGC_Collect. */
void collector__find(struct collector *c, struct elf *elf);
bool collector__has(const struct collector *c, u64 function);
