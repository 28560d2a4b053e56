/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process that asks debuginfod servers. It is forked while the rights are still there, gives them up and keeps the
 * network, a socket to the worker and nothing else, so the worker needs no network. It answers a build id with
 * the descriptor of the file that a server sent.
 */
#ifndef SONDE_ATTACH_FETCHER_H
#define SONDE_ATTACH_FETCHER_H

#include <signal.h>
#include <stddef.h>

struct fetcher;

/* Forks it; debuginfod__available() must have been asked before. 0 or negative errno. */
int fetcher__start(struct fetcher **out);
/*
 * The descriptor of a regular file, or negative errno; -ENOENT: no server has it, -ETIMEDOUT: none answered in time,
 * -ECANCELED: *stop became true (NULL: never), -EPIPE: the process has ended. Calls idle, which may be NULL, about every 20 ms.
 */
int fetcher__fetch(struct fetcher *f, const char *build_id, const volatile sig_atomic_t *stop, void (*idle)(void *arg),
		   void *arg);
/* What it lacks of its confinement, as text; "": nothing, or it does not answer. */
void fetcher__lacks(struct fetcher *f, char *out, size_t len);
/* The number of the first system call that its filter has refused, -1: none that is known. */
int fetcher__refused(const struct fetcher *f);
void fetcher__free(struct fetcher *f);

#endif
