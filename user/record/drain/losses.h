/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records that are lost: counted by family, reason and object, and written into the trace. */
#pragma once

#include "core/meta.h"
#include "record/tables.h"

struct losses;
struct session;

int losses__new(struct session *s);
void losses__free(struct losses *l);
void losses__poll(struct session *s);
/* pid: the process that the records belong to; 0: unknown, or several. */
void losses__add_of(struct session *s, u32 pid, u16 family, enum loss_reason reason, u64 count, u64 first, u64 last,
		    u16 object);
void losses__add(struct session *s, u16 family, enum loss_reason reason, u64 count, u64 first, u64 last, u16 object);
/* Adds records that the writer refused. Call it once, after the last write. */
void losses__add_refused(struct session *s);
/* Stores the path of an object that is about to be removed, for its losses. */
void losses__store_path(struct losses *l, u16 object, const char *path);
u64 losses__total(const struct losses *l);
void losses__sizes(const struct losses *l, table_size_fn *fn, void *arg);
