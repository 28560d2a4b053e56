/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds NVTX's tables in the loaded objects. Only the shim's thread calls this. */
#pragma once

#include "nvtx.h"

struct nvtx_table {
	uint32_t state, pad;
	uint64_t callbacks_size, get_table;
	uint64_t version_size;
	uint32_t version, pad2;
	uint64_t set_version;
	uint64_t slots[NVTX_SLOTS];
	uint64_t lists[NVTX_SLOTS + 2 * 6];
};
enum table_state { TABLE_FRESH, TABLE_STARTED, TABLE_COMPLETE };

/* Have objects been loaded or unloaded since nvtx_find__each()? */
bool nvtx_find__has_changed(void);
/*
 * Calls fn for each table, and old for libnvToolsExt (NVTX 2) with its addresses. No object is unloaded during these
 * calls: they hold the loader's lock, so they must not load or unload any.
 */
void nvtx_find__each(void (*fn)(struct nvtx_table *t, const char *path),
		     void (*old)(const char *path, uintptr_t begin, uintptr_t end));
/* The same for the tables that were found and are still there; the next nvtx_find__each() searches everywhere. */
void nvtx_find__again(void (*fn)(struct nvtx_table *t, const char *path));
