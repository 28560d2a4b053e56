/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reports new executable mappings on the whole machine: mmap records of one dummy perf event per CPU. */
#pragma once

#include "core/types.h"

struct mmaps;

/* A mapping as in the perf record; dev and ino are those of /proc/PID/maps, not always those of the backing inode. */
struct mmap_record {
	u32 pid;
	u64 time; /* CLOCK_MONOTONIC ns */
	u64 start, len, offset;
	u32 maj, min;
	u64 ino, generation;
	const char *path;
};

/* Returns 0 or negative errno. */
int mmaps__open(struct mmaps **out);
void mmaps__close(struct mmaps *m);
/* Descriptors to poll for input, one per CPU. */
u32 mmaps__fds(const struct mmaps *m, const int **fds);
/* Calls fn for each new record. Returns the number of records that the kernel dropped since the last call. */
u64 mmaps__drain(struct mmaps *m, void (*fn)(const struct mmap_record *r, void *arg), void *arg);
