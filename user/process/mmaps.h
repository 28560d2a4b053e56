/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Follows new executable mappings of the whole machine: mmap records of a dummy perf event a CPU. */
#ifndef SONDE_PROCESS_MMAPS_H
#define SONDE_PROCESS_MMAPS_H

#include "core/types.h"

struct mmaps;

/* A mapping as the perf record has it; dev and ino are those of /proc/PID/maps, not always of the backing inode. */
struct mmap_record {
	u32 pid;
	u64 time; /* CLOCK_MONOTONIC ns */
	u64 start, len, offset;
	u32 maj, min;
	u64 ino, generation;
	const char *path;
};

/* 0 or negative errno */
int mmaps__open(struct mmaps **out);
void mmaps__close(struct mmaps *m);
/* Descriptors to poll for input, one a CPU. */
u32 mmaps__fds(const struct mmaps *m, const int **fds);
/* Calls fn for each record that has come. Returns how many records the kernel had to drop since the last call. */
u64 mmaps__drain(struct mmaps *m, void (*fn)(const struct mmap_record *r, void *arg), void *arg);

#endif
