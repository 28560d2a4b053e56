/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Facts about a file that a family probes: found by a child without privileges (record/examine/examine.h), and
 * therefore untrusted.
 */
#pragma once

#include "python/layouts.h"
#include "record/family.h"

#define FILE_SEGMENTS_MAX 32

struct file_segment { /* with code */
	u64 addr, size; /* as the program header has them */
	u64 offset; /* in the file */
};

struct file_facts {
	char build_id[65]; /* in hexadecimal; "": none */
	u32 n_segments;
	struct file_segment segments[FILE_SEGMENTS_MAX];
	struct {
		s32 error; /* of python__identify */
		u32 reported; /* 1: it was reported that its stacks can't be walked */
		char why[160];
		struct python_runtime runtime;
	} python;
	/* By family: what its host's `sites` has filled */
	u64 family_facts[FAMILY_MAX][FAMILY_FACTS_MAX / sizeof(u64)];
};
