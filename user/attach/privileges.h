/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What each of a recording's two processes gives up: docs/design.md, "Safety". */
#ifndef SONDE_ATTACH_PRIVILEGES_H
#define SONDE_ATTACH_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Keeps the capabilities that following processes and attaching needs; with
 * `signals` the one to send a signal to another user's process, with
 * `perf_events` CAP_SYS_ADMIN, without which the kernel gives no uprobe by a perf
 * event (kernel/events/core.c, perf_uprobe_event_init). 0 or negative errno.
 */
int privileges__attacher(bool signals, bool perf_events);
/* For loading a library into a process: to trace it, to read its files and (CAP_SYS_ADMIN) its seccomp filter, and not to be kept waiting. 0 or negative errno. */
int privileges__injector(void);
/* Keeps none and leaves root for the user behind sudo, or else for nobody. 0 or negative errno. */
int privileges__worker(void);
/* The same for what reads traces; a root that can't become anybody else (in a user namespace) stays, without capabilities. */
int privileges__reader(void);
/* After EPERM or EACCES: why this process may not look into another, and what helps. Returns buf. */
char *privileges__refusal(char *buf, size_t len);

#endif
