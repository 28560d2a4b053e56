/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Executable file mappings read from /proc, without BPF: for `doctor` on a machine where BPF does not work. */
#pragma once

#include "process/process.h"

/* Processes whose mappings could not be read */
struct procs_unread {
	u32 refused; /* number of those that this process may not read */
	u32 late,
		first_late; /* number of those that did not answer in time (sandbox/bounded.h), and the first one's pid */
};

/*
 * Calls fn for each executable file mapping of each process that can be read; dev and ino are those of
 * /proc/PID/maps. Returns 0 or negative errno.
 */
int procs__each_mapping(void (*fn)(const struct mapping *m, void *arg), void *arg, struct procs_unread *unread);

/* The same for one process: returns 0 or negative errno; -ETIMEDOUT: it did not answer in time. */
int procs__each_mapping_of(u32 pid, void (*fn)(const struct mapping *m, void *arg), void *arg);

/* Returns a number in the status of a process or thread, by a format such as "PPid: %llu"; 0: there is none. */
u64 procs__status(u32 pid, const char *format);
/* Returns the state in /proc/PID/status, 'S' for example; 0: there is no such process or thread. */
char procs__state(u32 pid);
/*
 * Returns the number by which /proc shows the memory and files of a process: its own, or, if its main thread has
 * ended, that of a thread that has not. /proc/PID has neither then.
 */
u32 procs__shown_as(u32 pid);
/* Writes what has become of a process that can't be traced: "there is no process 12", or that it is a zombie. */
const char *procs__gone(u32 pid, char *text, size_t len);
