/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which code a running Python process runs, read from its memory. */
#pragma once

#include "python/snapshot.h"

#define PROGRAM_PATH 512 /* a longer path is left out */

struct python_program {
	char library[PROGRAM_PATH]; /* the folder of the standard library; "": not known */
	char script[PROGRAM_PATH]; /* the file that the process was started to run; "": none, as with -m and -c */
};

void snapshot__program(struct snapshot *l, struct python_program *p);
