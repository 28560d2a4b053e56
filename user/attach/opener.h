/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process that accesses file systems and other processes' memory maps, and that can be abandoned if it hangs.
 *
 * A file system that is served by a process or another machine may never answer, and a thread that waits for it
 * cannot be killed. So neither the worker, which writes the trace, nor the attacher, which owns the links, opens
 * foreign files or reads what other processes' locks protect. The *opener*, a child of the attacher, does. The worker
 * sends it requests over a socket of its own and waits for a limited time. After that it makes the attacher kill the
 * opener, which ends when the kernel lets it, and start another one.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define PERF_MAP_MAX (64u << 20) /* bytes of a perf map (record/examine/perf_map.h) */

/* Openers at once: killed ones that the kernel has not released yet. */
#define OPENERS_MAX 16

struct openers {
	pid_t current; /* 0: none */
	pid_t stuck[OPENERS_MAX]; /* killed, but not ended yet */
	int n_stuck;
	int notes; /* pipe by which they report which files processes map (attach/ownership.h); -1: none */
	bool remote_files; /* may open files on remote file systems */
};

/*
 * Kills the current opener and forks another one: returns a descriptor of its socket, or negative errno (-EAGAIN: too
 * many are stuck). It kills by pid, so the process must wait for its children itself and report those that ended.
 */
int openers__start(struct openers *o);
/* A child of the process has been waited for, and its pid may be reused: an opener is removed from the list. */
void openers__ended(struct openers *o, pid_t pid);
/*
 * The opener's main function: answers OP_OPEN, OP_OPEN_DEBUG, OP_OPEN_PERF_MAP, OP_SOURCE, OP_MAPS, OP_READ, OP_IMAGE,
 * OP_USER and OP_PROCESSES until the socket is closed.
 */
void opener__serve(int sock, int notes, bool remote_files) __attribute__((noreturn));
