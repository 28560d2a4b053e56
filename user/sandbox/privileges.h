/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What each of a recording's two processes gives up: docs/design.md, "Safety". */
#ifndef SONDE_SANDBOX_PRIVILEGES_H
#define SONDE_SANDBOX_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>

/* The accounts of scripts/sonde.sysusers; where they are missing, numbers that no account has. */
#define ACCOUNT_WORKER	 "sonde"
#define ACCOUNT_ATTACHER "sonde-attacher"
#define UID_WORKER	 1936682596 /* between systemd's ranges for containers and 2^31, which distributions leave unused */
#define UID_ATTACHER	 1936682597

/*
 * Leaves root for the attacher's account and keeps the capabilities that following processes and attaching needs;
 * with `signals` the one to send a signal to another user's process, with `perf_events` CAP_SYS_ADMIN, without which
 * the kernel gives no uprobe by a perf event (kernel/events/core.c, perf_uprobe_event_init). Then the filter of system
 * calls. What this system does not have of that is added to lacks. 0 or negative errno.
 */
int privileges__attacher(bool signals, bool perf_events, char *lacks, size_t len);
/* Of the attacher's those that opening what other processes map takes. 0 or negative errno. */
int privileges__opener(void);
/*
 * For loading a library into a process: to trace it, to read its files and (CAP_SYS_ADMIN) its seccomp filter, and not to be
 * kept waiting. opens: the one to open another user's /proc/PID/mem for writing, too (CAP_DAC_OVERRIDE). 0 or negative errno.
 */
int privileges__injector(bool opens);
/*
 * The filter of the process that does it, for good. A process that has one is not shown the filter of another
 * (kernel/seccomp.c, seccomp_get_filter): first the process that is loaded into must have been looked at.
 */
void privileges__filter_injector(void);
/*
 * Keeps none: into namespaces of its own, where there is no file but /proc with this process in it and no network, to the
 * worker's account, behind a filter of system calls. What this system does not have of that is added to lacks. 0 or
 * negative errno.
 */
int privileges__worker(char *lacks, size_t len);
/*
 * Keeps none, to the worker's account, behind a filter that lets it use the network and files of that account: for what asks
 * debuginfod servers. lacks as above. 0 or negative errno.
 */
int privileges__fetcher(char *lacks, size_t len);
/*
 * Leaves root for the attacher's account and keeps what looking into any process takes (CAP_SYS_ADMIN: its seccomp
 * filter), but not the rights to write files, behind a filter of system calls. Who is not root keeps what they have; a root
 * that can't become anybody else (in a user namespace) stays, with these capabilities alone. 0 or negative errno.
 */
int privileges__observer(void);
/* Leaves root for the user behind sudo, or else for the worker's account, for good: for what looks into users' folders. */
int privileges__user(void);
/*
 * The same for what reads traces, behind a filter of system calls; with `sources` it opens files by their paths for
 * reading. A root that can't become anybody else (in a user namespace) stays, without capabilities.
 */
int privileges__reader(bool sources);
/* After EPERM or EACCES: why this process may not look into another, and what helps. Returns buf. */
char *privileges__refusal(char *buf, size_t len);

#endif
