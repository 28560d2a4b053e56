/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process that asks file systems and other processes' memory maps, and may be given up for it.
 *
 * A file system that a process or another machine serves may never answer, and a thread that waits for it cannot be
 * killed. So neither the worker, which has the trace, nor the attacher, which has the links, opens a foreign file or
 * reads what another process's locks protect: the *opener* does, a child of the attacher. The worker asks it over a
 * socket of its own and waits for a limited time; after that it has the attacher kill the opener, which ends when the
 * kernel lets it, and start another.
 */
#ifndef SONDE_ATTACH_OPENER_H
#define SONDE_ATTACH_OPENER_H

#include <stdbool.h>
#include <sys/types.h>

/* At once: those that were given up and that the kernel has not let go. */
#define OPENERS_MAX 16

struct openers {
	pid_t current; /* 0: none */
	pid_t stuck[OPENERS_MAX]; /* given up, not yet ended */
	int n_stuck;
	int notes; /* pipe by which they report which files processes map (attach/ownership.h), -1: none */
	bool remote_files; /* may open files on file systems that are served remotely */
};

/*
 * Gives up the current one and forks another: a descriptor of its socket, or negative errno (-EAGAIN: too many are
 * stuck). It kills by number: the process must wait for its children itself and say which have ended.
 */
int openers__start(struct openers *o);
/* A child of the process has been waited for, and its number is free: it is forgotten if it was an opener. */
void openers__ended(struct openers *o, pid_t pid);
/* Answers OP_OPEN, OP_OPEN_DEBUG, OP_MAPS, OP_READ, OP_IMAGE, OP_USER and OP_PROCESSES until the socket ends. */
void opener__serve(int sock, int notes, bool remote_files) __attribute__((noreturn));

#endif
