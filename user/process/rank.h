/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rank of a process in distributed training, by the environment variables that launchers set. */
#pragma once

#include "core/types.h"

#include <stddef.h>

#define RANK_MAX (1 << 24) /* numbers from here on are refused */

struct process_rank {
	s32 rank, size; /* size 0: the process has no rank */
	s32 local; /* rank on its machine; -1: not known */
};

#define RANK_ENTRY     48 /* bytes of "NAME=value" with its NUL; the names and numbers that count are shorter */
#define RANK_LAUNCHERS 4
#define RANK_VARIABLES 3

/* Parses an environment of any length in parts. Begin with zeros. */
struct rank_parser {
	char entry[RANK_ENTRY];
	u32 len; /* of the current entry; RANK_ENTRY: it is too long and does not count */
	s32 values[RANK_LAUNCHERS][RANK_VARIABLES]; /* the number plus 1; 0: not set, or not a number */
};

void rank_parser__add(struct rank_parser *p, const char *bytes, size_t n);
/*
 * Call it once all was added. An entry without its NUL does not count, as it may have been cut. The first launcher in
 * the table that set both a rank and a size counts.
 */
struct process_rank rank_parser__result(struct rank_parser *p);
