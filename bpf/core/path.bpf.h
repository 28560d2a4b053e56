/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Paths of what the kernel keeps as a tree: files, cgroups. Components are noted from leaf to root (path__note), then their
 * names are written from root to leaf behind a record (path__write), each with a slash before it.
 *
 * All is kept in a map: the verifier knows the value of each number on the stack and follows each step of a loop for
 * itself, but not what is here.
 */
#ifndef SONDE_PATH_BPF_H
#define SONDE_PATH_BPF_H

#include "core/sonde.bpf.h"

#define PATH_ROOM	 1024 /* of a path; longer ones are cut at the start of a component */
#define PATH_NAME_ROOM	 256 /* of one component, with its NUL */
#define PATH_DEPTH	 16 /* components; what lies above is left out */
#define PATH_RECORD_ROOM 128

struct path_room {
	u64 names[PATH_DEPTH]; /* of the components in the kernel's memory, from leaf to root */
	u32 components;
	u32 length; /* of the path so far, bytes */
	u8 before[PATH_RECORD_ROOM]; /* at its end lies the record */
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

/* Notes the next component towards the root; false: there are as many as there is room for. */
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

/* Writes what was noted. Returns the bytes of the path, at most PATH_ROOM. */
static __always_inline u32 path__write(struct path_room *r)
{
	u32 len;

	bpf_loop(PATH_DEPTH, path__append, &r, 0);
	len = r->length;
	barrier_var(len);
	return len > PATH_ROOM ? PATH_ROOM : len;
}

#endif
