/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads the interpreters, threads and stacks of a running Python process from outside. The process is neither stopped
 * nor changed: its memory is read through /proc/PID/mem while it runs. What is read of a running thread may be a
 * mixture of two moments, so a stack is read twice and counts only if both results agree. snapshot__open and
 * snapshot__read_tasks do all that needs a privilege; the other functions read untrusted memory and files, and need
 * none.
 */
#pragma once

#include <stddef.h>

#include "core/python.h"
#include "util/map.h"

#define SNAPSHOT_FILES_MAX 512 /* mapped files that are examined for an interpreter */
#define ASYNCIO_OFFSETS	   13 /* numbers in _AsyncioDebug */

/* A thread as the kernel describes it. */
struct snapshot_task {
	u32 tid;
	u32 own_tid; /* in the process's own pid namespace, which differs in a container */
	char comm[16];
	char state; /* as in /proc/PID/stat: R S D T t Z; F: frozen with its cgroup; 0: the thread has ended */
	bool in_syscall;
	s32 syscall; /* the number of the system call */
	u64 arg; /* its first argument */
	s64 asleep_ns; /* time since it left its CPU; -1: it is on a CPU, or not known */
};

struct snapshot_frame {
	const char *name; /* qualified from 3.11 on */
	const char *file;
	u32 line; /* 0: not known */
	u32 first_line; /* of the function */
};

/* A code object that occurs in a stack. */
struct snapshot_code {
	char *name, *file; /* NULL: not known */
	char *qualified; /* before 3.11, of a coroutine: its qualified name; NULL: not known */
	u8 *lines;
	u32 lines_size, first_line;
};

struct snapshot_interpreter {
	u64 id; /* its address */
	u64 gil; /* address, 0: not known */
	u64 holder; /* thread state, 0: none */
	u64 number; /* Python's own number of the interpreter: 0 is the main one */
};

struct snapshot_thread {
	struct snapshot_task task;
	u64 state; /* address of the PyThreadState; 0: the thread does not run Python code */
	u32 interpreter; /* index in `interpreters` */
	char *name; /* Python's name of the thread, NULL: it has none */
	bool holds; /* it holds the GIL */
	bool waits; /* it waits for the GIL */
	bool torn; /* its stack changed at each attempt to read it */
	bool cut; /* the stack was deeper than the limit of a walk */
	struct snapshot_frame *frames; /* innermost first */
	u32 n_frames;
};

struct snapshot {
	u32 pid;
	int mem; /* /proc/PID/mem */
	int files[SNAPSHOT_FILES_MAX]; /* mapped files with code, those likely to be an interpreter first */
	u64 starts[SNAPSHOT_FILES_MAX], ends[SNAPSHOT_FILES_MAX], offsets[SNAPSHOT_FILES_MAX];
	u32 n_files;
	char exe[256];
	bool remote_files; /* set it before snapshot__open: also open files on remote file systems */
	const char *remote; /* name of a remote file system on which a file was not opened; NULL: none */
	bool is_denied; /* a file could not be opened for lack of rights */
	u64 copied; /* bytes of remote files */

	struct snapshot_task *tasks;
	u32 n_tasks;
	char frozen[256]; /* path of the cgroup that the process is frozen with; "": none */
	u64 stack; /* where the main thread's C stack ends */

	struct snapshot_runtime {
		struct python_layout layout;
		u64 runtime, code_type; /* their addresses in the process */
	} runtimes[PYTHON_RUNTIMES]; /* that are initialized */
	u32 n_runtimes;
	/* of the runtime that is read at the moment; that is the first one, except in snapshot__threads */
	struct python_layout layout;
	u64 runtime, code_type;
	u64 asyncio[ASYNCIO_OFFSETS]; /* _AsyncioDebug (3.14 and later, python/task_layout.h); 0: there is none */
	struct map codes; /* by address: struct snapshot_code */
	u64 code_bytes; /* of these code objects */
	u64 code_bytes_max; /* the limit above which no more are read; 0: none */
	struct map types; /* by address: u8, python/objects.h */
	struct snapshot_pages *pages; /* NULL: none are kept */

	struct snapshot_interpreter *interpreters;
	u32 n_interpreters;
	struct snapshot_thread *threads; /* Python's threads, newest first, then the others */
	u32 n_threads;
};

/*
 * Opens what will be read. Returns 0, or negative errno with a message: -ESRCH, -EACCES, ... Call snapshot__free in
 * any case.
 */
int snapshot__open(struct snapshot *l, u32 pid, char *err, size_t len);
/* Reads the threads that the process has now. */
int snapshot__read_tasks(struct snapshot *l);
/* Finds the interpreter. Returns 0, or -ENOENT or -ENOTSUP with a message. */
int snapshot__identify(struct snapshot *l, char *err, size_t len);
/*
 * Calls fn with each GIL if interpreters have several: the address of its condition, by which events identify it, and
 * the number of its interpreter.
 */
void snapshot__gils(const struct snapshot *l, void (*fn)(u64 condition, u64 interpreter, void *arg), void *arg);
/* Closes the mapped files, which are not needed after that. */
void snapshot__close_files(struct snapshot *l);
/* Reads interpreters, threads and stacks. Returns 0; -ESRCH: the process has ended; -EAGAIN: it changed too fast. */
int snapshot__threads(struct snapshot *l);
void snapshot__free(struct snapshot *l);

/* A str of the process as UTF-8, malloc'ed; NULL: it is not a str, or there is no memory. */
char *snapshot__text(const struct snapshot *l, u64 str);
/* In tasks.c: the address of the main interpreter; 0: there is none. */
u64 snapshot__main_interpreter(const struct snapshot *l);
/* For the files that implement this header: reads all of the bytes, or returns false. */
bool snapshot__read(const struct snapshot *l, u64 address, void *to, size_t size);
u64 snapshot__word(const struct snapshot *l, u64 address);
/*
 * From now on pages that are read are kept for further reads, as objects are read word by word; forgets those that are
 * kept. Call it often, or what is read is old. 0 or -ENOMEM.
 */
int snapshot__keep_pages(struct snapshot *l);
void snapshot__forget_pages(struct snapshot *l);
/* Reads without the pages that are kept. */
bool snapshot__read_now(const struct snapshot *l, u64 address, void *to, size_t size);
/*
 * In snapshot_frames.c: an address on the C stack of the thread that runs the thread state; 0: there is none, as it
 * runs no Python code or is one of 3.8 or 3.9.
 */
u64 snapshot__c_stack(const struct snapshot *l, u64 state);
/* In snapshot_frames.c: reads the stack of a thread, with retries. Returns 0 or -ENOMEM. */
int snapshot__stack(struct snapshot *l, struct snapshot_thread *t);
/*
 * Fills in a frame's name and line, which point to l->codes; an unknown name is "?". false: no memory, or at the
 * limit.
 */
bool snapshot__frame(struct snapshot *l, u64 code, s64 offset, struct snapshot_frame *out);
/* Names the frame by a str of the process, which is read once for each code object; false as above. */
bool snapshot__name_frame(struct snapshot *l, u64 code, u64 str, struct snapshot_frame *f);
/* The offset in the bytecode, in bytes, at which a frame is; negative: it has not begun. */
s64 snapshot__offset(const struct snapshot *l, const u8 *frame, u64 code);
/* Forgets code objects and types: in a long time another one may get the address of one that was freed. */
void snapshot__forget_objects(struct snapshot *l);
