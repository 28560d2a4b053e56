/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stores which file is mapped at which address in which process, including processes that have ended: from reported
 * mappings (struct family_host, mapped), and from /proc/PID/maps for the rest.
 */
#pragma once

#include "process/process.h"
#include "record/tables.h"

struct session;
struct mappings;

/* A code mapping of a process. */
struct mapped_code {
	u64 start, end, offset; /* as in struct mapping */
	u64 link_start, link_end; /* the mapping by which the file is opened, another one if the code was moved */
	u64 dev, ino;
	u32 generation;
	u64 path; /* mappings__path() */
	u64 time; /* time at which it was made */
};

struct mappings *mappings__new(struct session *s);
void mappings__free(struct mappings *m);
void mappings__add(struct mappings *m, const struct mapping *at);
/*
 * Returns the mapping at an address of a process at a time; NULL: unknown. parent: the process that forked it, which
 * has the same mappings if the child ended before it was examined. Valid until the next call.
 */
const struct mapped_code *mappings__at(struct mappings *m, u32 pid, u32 parent, u64 addr, u64 time);
/* Returns the path of a mapping; "[vdso]" and the like begin with a bracket, "" is code without a file. */
const char *mappings__path(const struct mappings *m, u64 path);
/* Called at each tick: removes processes that have ended. */
void mappings__tick(struct mappings *m, u64 now);
void mappings__sizes(const struct mappings *m, table_size_fn *fn, void *arg);
