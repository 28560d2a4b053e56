/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What each process of sonde gives up: docs/design.md, "Safety". */
#pragma once

#include "util/account.h"

#include <stdbool.h>
#include <stddef.h>

/* The accounts of scripts/sonde.sysusers; if they do not exist, the numbers of util/account.h are used. */
#define ACCOUNT_WORKER	 "sonde"
#define ACCOUNT_ATTACHER "sonde-attacher"

/*
 * Changes from root to the attacher's account and keeps the capabilities for following processes and attaching; with
 * `signals` also the one to signal another user's process, with `perf_events` also CAP_SYS_ADMIN, which the kernel
 * requires for a uprobe by a perf event (kernel/events/core.c, perf_uprobe_event_init). Then installs the filter of
 * system calls. Measures that this system does not support are appended to lacks. Returns 0 or negative errno.
 */
int privileges__attacher(bool signals, bool perf_events, char *lacks, size_t len);
/*
 * Keeps, of the attacher's capabilities, those for opening files that other processes map. Returns 0 or negative
 * errno.
 */
int privileges__opener(void);
/*
 * For the process that loads a library into another one: keeps the capabilities to trace it, to read its files and
 * (CAP_SYS_ADMIN) its seccomp filter, and to run with real-time priority. opens: also the one to open another user's
 * /proc/PID/mem for writing (CAP_DAC_OVERRIDE). Returns 0 or negative errno.
 */
int privileges__injector(bool opens);
/*
 * Installs the filter of that process, irreversibly. The kernel does not show seccomp filters to a process that has
 * one itself (kernel/seccomp.c, seccomp_get_filter), so the target must have been examined before. Returns 0 or
 * -ENOMEM.
 */
int privileges__filter_injector(void);
/*
 * Keeps no capability: enters new namespaces, without files except for a /proc that shows only this process, and
 * without a network; changes to the worker's account and installs a filter of system calls. Measures that this system
 * does not support are appended to lacks. Returns 0 or negative errno.
 */
int privileges__worker(char *lacks, size_t len);
/*
 * Changes from root to the attacher's account and keeps the capabilities to read any process (CAP_SYS_ADMIN: its
 * seccomp filter), but not those to write files; installs a filter of system calls. A user other than root keeps
 * their rights; a root that can't become another user (in a user namespace) stays root with only these capabilities.
 * Returns 0 or negative errno.
 */
int privileges__observer(void);
/*
 * Changes from root to the user behind sudo, or else to the worker's account, irreversibly: for code that reads
 * users' folders.
 */
int privileges__user(void);
/*
 * The same for code that reads traces, with a filter of system calls; with `sources` files can be opened by their
 * paths for reading. A root that can't become another user (in a user namespace) stays root without capabilities.
 */
int privileges__reader(bool sources);
/*
 * For code of others that reads devices: changes to the worker's account, keeps no capability, opens no file for
 * writing but those that match the patterns `write`, reads only below the folders `read` (both end with NULL), and
 * installs a filter of system calls. Measures that this system does not support are left out: the worker lacks them,
 * too, and reports it, except for the limits on files, for which Linux has Landlock.
 */
int privileges__meter(const char *const *read, const char *const *write);
/* After EPERM or EACCES: why this process may not read another one, and what helps. Returns buf. */
char *privileges__refusal(char *buf, size_t len);
