/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How large the tables of a recording are: what grows with processes, files, stacks and texts states it here. */
#ifndef SONDE_RECORD_TABLES_H
#define SONDE_RECORD_TABLES_H

#include "core/types.h"

struct table_size {
	const char *name;
	u64 entries;
	u64 max; /* entries at most; 0: as many as there are processes, threads or mappings of them */
	u64 bytes;
	u64 evicted; /* since the start */
};

typedef void table_size_fn(const struct table_size *size, void *arg);

#endif
