/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A look into a running Python process from outside: its interpreters, threads and their stacks as they are now. The
 * process is not stopped and nothing in it is changed: its memory is read through /proc/PID/mem, while it runs. Who
 * reads a thread that runs may find pieces of two moments: so a stack is read twice, and counts if both are the same.
 *
 * All that needs a privilege is in snapshot__open and snapshot__read_tasks: what comes after them reads foreign memory and files,
 * and needs no privileges.
 */
#ifndef SONDE_PYTHON_SNAPSHOT_H
#define SONDE_PYTHON_SNAPSHOT_H

#include <stddef.h>

#include "core/python.h"
#include "util/map.h"

#define SNAPSHOT_FILES_MAX 512 /* mapped files that are examined for an interpreter */

/* What the kernel says of a thread. */
struct snapshot_task {
	u32 tid;
	u32 own_tid; /* as the thread itself knows it: in a container it has another number */
	char comm[16];
	char state; /* as in /proc/PID/stat: R S D T t Z; 0: gone */
	bool in_syscall;
	s32 syscall; /* its number */
	u64 arg; /* its first argument */
	s64 asleep_ns; /* since it left its CPU; -1: it has not, or not known */
};

struct snapshot_frame {
	const char *name; /* qualified from 3.11 on */
	const char *file;
	u32 line; /* 0: not known */
};

/* A code object that was met. */
struct snapshot_code {
	char *name, *file; /* NULL: not known */
	u8 *lines;
	u32 lines_size, first_line;
};

struct snapshot_interpreter {
	u64 id; /* its address */
	u64 gil; /* address, 0: not known */
	u64 holder; /* thread state, 0: none */
	u64 number; /* as Python numbers it: the main one is 0 */
};

struct snapshot_thread {
	struct snapshot_task task;
	u64 state; /* PyThreadState, 0: no thread of Python's */
	u32 interpreter; /* index */
	bool holds; /* the GIL */
	bool waits; /* for it */
	bool torn; /* its stack changed at each try */
	bool cut; /* deeper than is walked */
	struct snapshot_frame *frames; /* from the innermost on */
	u32 n_frames;
};

struct snapshot {
	u32 pid;
	int mem; /* /proc/PID/mem */
	int files[SNAPSHOT_FILES_MAX]; /* mapped ones */
	u64 starts[SNAPSHOT_FILES_MAX], ends[SNAPSHOT_FILES_MAX], offsets[SNAPSHOT_FILES_MAX];
	u32 n_files;
	char exe[256];
	bool remote_files; /* set before snapshot__open: opens files on file systems that are served remotely, too */
	const char *remote; /* the name of one where a file was not opened for that, NULL: none was */

	struct snapshot_task *tasks;
	u32 n_tasks;

	struct python_layout layout;
	u64 runtime, code_type; /* addresses in the process */
	struct map codes; /* by address: struct snapshot_code */

	struct snapshot_interpreter *interpreters;
	u32 n_interpreters;
	struct snapshot_thread *threads; /* Python's in its order, newest first; then the others */
	u32 n_threads;
};

/* Opens what is to be read. 0, or negative errno with a message: -ESRCH, -EACCES, .. l is to be freed in any case. */
int snapshot__open(struct snapshot *l, u32 pid, char *err, size_t len);
/* The threads as the kernel sees them now. */
int snapshot__read_tasks(struct snapshot *l);
/* Finds the interpreter. 0, or -ENOENT, -ENOTSUP with a message. */
int snapshot__identify(struct snapshot *l, char *err, size_t len);
/* Reads interpreters, threads and stacks. 0; -ESRCH: the process is gone; -EAGAIN: it changed too fast. */
int snapshot__threads(struct snapshot *l);
void snapshot__free(struct snapshot *l);

/* For the files of this module: reads it all, or false. */
bool snapshot__read(const struct snapshot *l, u64 address, void *to, size_t size);
u64 snapshot__word(const struct snapshot *l, u64 address);
/* snapshot_frames.c: the stack of a thread state, with retries. 0 or -ENOMEM */
int snapshot__stack(struct snapshot *l, struct snapshot_thread *t);
void snapshot__free_codes(struct snapshot *l);

#endif
