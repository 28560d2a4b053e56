/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The size of a table that grows with processes, files, stacks or texts, as event meta_table reports it. */
#pragma once

#include "core/types.h"

struct table_size {
	const char *name;
	u64 entries;
	u64 max; /* limit of entries; 0: bounded only by the number of processes, threads or mappings */
	u64 bytes;
	u64 evicted; /* since the start */
};

typedef void table_size_fn(const struct table_size *size, void *arg);
