/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Host code that finds the waits for the GIL in a binary, see docs/gil.md. */
#pragma once

#include "elf/elf.h"

#define GIL_SITES_MAX 16

/* One timed wait of take_gil: the addresses of the call, and of the jump on its result. */
struct gil_wait_site {
	u64 call;
	u64 jump;
};

/* Does the object export CPython's interface (3.7 and later)? */
bool gil_find__is_cpython(struct elf *elf);
/* Is it a build without a GIL by default (3.13t and later)? */
bool gil_find__is_free_threaded(struct elf *elf);
/* "CPython 3.11.2": from Py_Version (3.11 and later), else from the file name. */
void gil_find__name(struct elf *elf, const char *path, char *name, size_t len);
/* The waits in take_gil and its copies. Returns their number, at most max. */
u32 gil_find__waits(struct elf *elf, struct gil_wait_site *out, u32 max);

#define GIL_FULL_MAX 32

/*
 * The sites at which the GIL is taken and dropped (drop_gil is inlined many times), and drop_gil's wait for a switch.
 */
struct gil_full_sites {
	u64 takes[GIL_FULL_MAX], drops[GIL_FULL_MAX]; /* calls of pthread_cond_signal */
	u32 n_takes, n_drops;
	struct gil_wait_site switches[GIL_FULL_MAX]; /* calls of pthread_cond_wait */
	u32 n_switches;
	/* calls of the two functions that were not recognized as one of these, or that exceed the arrays */
	u32 unknown;
};

void gil_find__full(struct elf *elf, struct gil_full_sites *out);

/*
 * The default version of pthread_cond_timedwait in libc: its entry, where the return address is on top of the stack,
 * and its exits.
 */
struct gil_libc_site {
	u64 enter;
	u64 leave[GIL_SITES_MAX];
	u32 n;
};

/* Returns 0, or -ENOENT with the reason in *why. */
int gil_find__libc(struct elf *elf, struct gil_libc_site *out, const char **why);
