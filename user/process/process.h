/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Facts about other processes: their mappings, programs and command lines. */
#pragma once

#include "core/types.h"
#include "process/rank.h"

/* A mapping of a file with code. */
struct mapping {
	u32 pid;
	u64 start, end; /* addresses in the process */
	u64 offset; /* bytes in the file */
	u64 dev, ino; /* device and inode number of the backing inode */
	u32 generation; /* of the inode number */
	u32 magic; /* of the file system; 0: unknown */
	u32 uid; /* the account that is responsible for the process (util/account.h) */
	char comm[16]; /* the process's name; "": unknown */
	const char *path;
	u64 time; /* CLOCK_MONOTONIC ns: when the mapping was made, or found at the start */
};

/* The contents of /proc/PID for a process; "" for what can't be read. */
struct process_image {
	char exe[2048];
	char command[2048]; /* its arguments separated by blanks */
	bool has_title; /* `command` is one text with blanks, mostly a title that the process has given itself */
	char cgroup[8192]; /* the contents of the file */
	struct process_rank rank; /* by its environment, of which nothing else is returned */
};
