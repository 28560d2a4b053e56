/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Line tables of Python's code objects. Processes that run the same program have the same tables, and so have
 * functions with equal line numbers: equal tables are stored once.
 */
#pragma once

#include "util/map.h"

struct line_table {
	u64 hash;
	u32 users, size;
	u8 data[];
};

struct line_tables {
	struct map by_hash; /* u64 -> struct line_table *: the first of that hash */
	u64 bytes;
};

void line_tables__init(struct line_tables *t);
/* Call it after all tables were put back. */
void line_tables__free(struct line_tables *t);
/* Returns a table with these contents, valid until it is put back; NULL: no memory. */
struct line_table *line_tables__take(struct line_tables *t, const u8 *data, u32 size);
/* NULL-safe. */
void line_tables__put(struct line_tables *t, struct line_table *l);
