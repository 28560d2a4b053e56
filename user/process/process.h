/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is known of other processes: what they map, what they run. */
#ifndef SONDE_PROCESS_PROCESS_H
#define SONDE_PROCESS_PROCESS_H

#include "core/types.h"

/* One file mapping that holds code. */
struct mapping {
	u32 pid;
	u64 start, end; /* addresses in the process */
	u64 offset; /* bytes in the file */
	u64 dev, ino; /* backing inode */
	u32 generation; /* of that inode number */
	u32 magic; /* of the file system, 0: not known */
	u32 uid; /* the process's effective user */
	char comm[16]; /* the process's name, "": not known */
	const char *path;
	u64 time; /* CLOCK_MONOTONIC ns: when it was made, or found at the start */
};

/* What /proc/PID says of a process; "" for what can't be read. */
struct process_image {
	char exe[2048];
	char command[2048]; /* its words separated by blanks */
	char cgroup[8192]; /* the file's text */
};

#endif
