/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is kept of a file that a family probes: found by a child without privileges (record/examine.h), to be taken as a claim. */
#ifndef SONDE_RECORD_FILE_FACTS_H
#define SONDE_RECORD_FILE_FACTS_H

#include "python/layouts.h"

#define FILE_SEGMENTS_MAX 32
#define FILE_FAMILIES_MAX 32
/* A family by its id, of which those that there are differ in these bits */
#define FAMILY_INDEX(id) ((id) % FILE_FAMILIES_MAX)
#define FAMILY_BIT(id)	 (1u << FAMILY_INDEX(id))
#define FAMILY_FACTS_MAX 256 /* bytes */

struct file_segment { /* with code */
	u64 addr, size; /* as the file says */
	u64 offset; /* in the file */
};

struct file_facts {
	char build_id[65]; /* in hexadecimal, "": none */
	u32 n_segments;
	struct file_segment segments[FILE_SEGMENTS_MAX];
	struct {
		s32 error; /* of python__identify */
		u32 reported; /* 1: that its stacks can't be walked */
		char why[160];
		struct python_runtime runtime;
	} python;
	/* By FAMILY_INDEX: what its host's `learn` has filled */
	u64 own[FILE_FAMILIES_MAX][FAMILY_FACTS_MAX / sizeof(u64)];
};

#endif
