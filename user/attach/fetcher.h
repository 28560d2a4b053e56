/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process that sends requests to debuginfod servers, so that the worker needs no network. It is forked before
 * privileges are dropped, drops its own, and keeps only the network and a socket to the worker. It answers a build id
 * with the descriptor of the file that a server sent.
 */
#pragma once

#include <signal.h>
#include <stddef.h>

struct fetcher;

/* Forks the process; debuginfod__available() must have been called before. Returns 0 or negative errno. */
int fetcher__start(struct fetcher **out);
/*
 * Returns the descriptor of a regular file, or negative errno; -ENOENT: no server has it, -ETIMEDOUT: none answered
 * in time, -ECANCELED: *stop became true (NULL: never), -EPIPE: the process has ended. Calls idle, which may be NULL,
 * about every 20 ms.
 */
int fetcher__fetch(struct fetcher *f, const char *build_id, const volatile sig_atomic_t *stop, void (*idle)(void *arg),
		   void *arg);
/* The parts of its confinement that could not be set up, as text; "": none, or it does not answer. */
void fetcher__lacks(struct fetcher *f, char *out, size_t len);
/* The number of the first system call that its filter has refused; -1: none, or unknown. */
int fetcher__refused(const struct fetcher *f);
void fetcher__free(struct fetcher *f);
