/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A child process that reads a foreign file: ELF tables, code, DWARF.
 *
 * What it parses may take it over. So it keeps no privilege, no descriptor but its socket and the files that come by it, and
 * no system call but those that read these files, use its own memory and answer; time of the CPU and memory are limited.
 * It can only lie about the files that it was given, and its answers are checked like any foreign bytes.
 */
#ifndef SONDE_SANDBOX_SANDBOX_H
#define SONDE_SANDBOX_SANDBOX_H

#include "core/types.h"

#include <sys/types.h>

struct forkserver;

/* How long an answer may take: libtorch_cuda takes 1 s or so on a busy machine. */
#define SANDBOX_WAIT_MS 8000

/* What the child does: it answers the messages (sandbox/message.h) that come by the socket, and returns at its end. */
typedef void sandbox_serve(int sock, void *arg);

struct sandbox {
	int sock; /* -1: there is no child */
	pid_t pid; /* of this process's own child, 0: a fork server's */
	struct forkserver *server;
	u32 number; /* of the child at the server */
};

#define SANDBOX_NONE       \
	(struct sandbox)   \
	{                  \
		.sock = -1 \
	}

/*
 * Forks a child of this process, which must wait for its children itself and say which have ended (the child is killed by
 * number). 0 or negative errno.
 */
int sandbox__fork(struct sandbox *s, sandbox_serve *serve, void *arg);
/* Kills the child and closes the socket. */
void sandbox__end(struct sandbox *s);
/* A child of this process has been waited for, and its number is free. */
void sandbox__ended(struct sandbox *s, pid_t pid);

/*
 * A process that forks such children for another one, which asks without waiting. It reads nothing foreign, and is started
 * before that one does: so a child's memory holds nothing of other files and processes, and a fork takes the same
 * time however much that one comes to hold.
 */
/* Forks it; its children run serve(sock, arg). NULL: it can't be. Of its caller's memory `forget` unmaps what children must not read. */
struct forkserver *forkserver__start(sandbox_serve *serve, void *arg, void (*forget)(void *arg));
/* A child of it. 0 or negative errno; if the server has ended, the child's socket has too. */
int forkserver__fork(struct forkserver *f, struct sandbox *out);
/* Ends it and its children. NULL-safe. */
void forkserver__free(struct forkserver *f);

#endif
