/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sums of report disk. */
#pragma once

#include "model/query.h"
#include "model/stats.h"

struct file_key {
	u64 dev, ino;
};

struct io_key {
	struct file_key file;
	u32 pid, op, from, asker;
	u32 disk_dev, unused;
};

struct io_group {
	struct stats time;
	u64 bytes, queue_ns, device_ns, open, errors, by_call;
	char disk[17];
};

struct memory_key {
	struct file_key file;
	u32 pid, from;
};

struct memory_group {
	struct stats faults;
	u64 missed, written;
};

struct stall_key {
	u32 pid, kind;
};

struct process {
	u64 major, minor, read, written;
};

struct disk_report {
	const struct query *args;
	struct map files; /* struct file_key -> char *, the name */
	struct map ios; /* struct io_key -> struct io_group */
	struct map memory; /* struct memory_key -> struct memory_group */
	struct map stalls; /* struct stall_key -> struct stats */
	struct map processes; /* u32 -> struct process */
	struct stats_pool pool;
};

/* Reads the trace. 0 or negative errno; in both cases the sums have to be freed. */
int disk_report__read(struct disk_report *d, const struct query *args);
void disk_report__free(struct disk_report *d);
