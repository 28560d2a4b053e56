/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Paths of objects that the kernel stores as a tree: files, cgroups. path__note() notes the components from the leaf
 * to the root; path__write() then writes their names from the root to the leaf behind a record, each after a slash.
 *
 * All state is in a map and not on the stack. The verifier tracks the value of each number on the stack, and would
 * follow each iteration of a loop separately.
 */
#pragma once

#include "core/sonde.bpf.h"

#define PATH_ROOM	 1024 /* bytes of a path; a longer path is cut at the start of a component */
#define PATH_NAME_ROOM	 256 /* bytes of one component, with its NUL */
#define PATH_DEPTH	 16 /* components; those nearer to the root are left out */
#define PATH_RECORD_ROOM 128

struct path_room {
	u64 names[PATH_DEPTH]; /* addresses of the component names in kernel memory, from leaf to root */
	u32 components;
	u32 length; /* bytes of the path so far */
	u8 before[PATH_RECORD_ROOM]; /* the record lies at the end of this array, directly before the path */
	char path[PATH_ROOM + PATH_NAME_ROOM] __attribute__((aligned(8)));
};

/* The record of a type whose last member is the path. */
#define path__record(room, type)                                                                                     \
	({                                                                                                           \
		_Static_assert(sizeof(type) <= PATH_RECORD_ROOM && sizeof(type) % 8 == 0, "a record before a path"); \
		(type *)((room)->path - sizeof(type));                                                               \
	})

static __always_inline void path__begin(struct path_room *r)
{
	r->components = r->length = 0;
}

/* Notes the next component towards the root; false if PATH_DEPTH components are noted already. */
static __always_inline bool path__note(struct path_room *r, const void *name)
{
	u32 n = r->components;

	if (n >= PATH_DEPTH)
		return false;
	r->names[n & (PATH_DEPTH - 1)] = (u64)name;
	r->components = n + 1;
	return true;
}

/* Appends a slash and the i-th component from the root. */
static long path__append(u32 i, struct path_room **room)
{
	struct path_room *r = *room;
	u32 n = r->components, at = r->length;
	long len;

	if (i >= n || at >= PATH_ROOM - 1)
		return 1;
	r->path[at & (PATH_ROOM - 1)] = '/';
	at++;
	len = bpf_probe_read_kernel_str(&r->path[at & (PATH_ROOM - 1)], PATH_NAME_ROOM,
					(const void *)r->names[(n - 1 - i) & (PATH_DEPTH - 1)]);
	r->length = len > 1 && len <= PATH_NAME_ROOM ? at + len - 1 : at;
	return 0;
}

/* Writes the noted path. Returns its length in bytes, at most PATH_ROOM. */
static __always_inline u32 path__write(struct path_room *r)
{
	u32 len;

	bpf_loop(PATH_DEPTH, path__append, &r, 0);
	len = r->length;
	barrier_var(len);
	return len > PATH_ROOM ? PATH_ROOM : len;
}
