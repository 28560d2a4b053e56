/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A child process that reads an untrusted file: ELF tables, code, DWARF.
 *
 * The input may compromise it. So it has no privilege, no descriptors except for its socket and the files that are
 * passed to it, and no system calls except for those that read these files, use its own memory and answer; its CPU
 * time and memory are limited. It can only give wrong answers about the files that it was given, and its answers are
 * checked like any untrusted input.
 */
#pragma once

#include "core/types.h"

#include <sys/types.h>

struct forkserver;

/* The time limit of an answer; libtorch_cuda takes about 1 s on a busy machine. */
#define SANDBOX_WAIT_MS 8000

/*
 * The child's main function: it answers the messages (sandbox/message.h) on the socket, and returns when that is
 * closed.
 */
typedef void sandbox_serve(int sock, void *arg);

struct sandbox {
	int sock; /* -1: there is no child */
	pid_t pid; /* of a child of this process; 0: the fork server's */
	struct forkserver *server;
	u32 number; /* of the child at the server */
};

#define SANDBOX_NONE       \
	(struct sandbox)   \
	{                  \
		.sock = -1 \
	}

/*
 * Forks a child of this process. The process must wait for its children itself and report those that ended, because
 * the child is killed by its pid. Returns 0 or negative errno.
 */
int sandbox__fork(struct sandbox *s, sandbox_serve *serve, void *arg);
/*
 * The same; before the child drops its privileges it calls prepare, which may open what the child is to read. If that
 * returns false, the child ends.
 */
int sandbox__fork_prepared(struct sandbox *s, bool (*prepare)(void *arg), sandbox_serve *serve, void *arg);
/* Kills the child and closes the socket. */
void sandbox__end(struct sandbox *s);
/* A child of this process has been waited for, and its pid may be reused. */
void sandbox__ended(struct sandbox *s, pid_t pid);

/*
 * A process that forks such children on request of another one, which does not block for it. It reads no untrusted
 * input, and is started before the other process does: so a child's memory contains nothing of other files and
 * processes, and the time of a fork does not grow with the memory of the other process.
 */
/*
 * Forks the server; its children run serve(sock, arg). NULL: failed. `forget` unmaps the parts of the caller's memory
 * that children must not read.
 */
struct forkserver *forkserver__start(sandbox_serve *serve, void *arg, void (*forget)(void *arg));
/* Requests a child. Returns 0 or negative errno; if the server has ended, the child's socket is closed, too. */
int forkserver__fork(struct forkserver *f, struct sandbox *out);
/* Children that are forked from now on have the usual priority (util/priority.h). */
void forkserver__lower(struct forkserver *f);
/* Ends the server and its children. NULL-safe. */
void forkserver__free(struct forkserver *f);
