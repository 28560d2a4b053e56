/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The CPU time of the processes that a recording starts: the attacher, the openers, sonde-examiner and the children that parse
 * files. Several processes fork them, and the worker, which prints the sum, may not read /proc of others. So the numbers of those
 * that live and the CPU time of those that ended are in a page that all of them share. A process's CPU clock can be read by
 * its number without any right. Children that parse foreign bytes don't have the page.
 */
#ifndef SONDE_SANDBOX_USAGE_H
#define SONDE_SANDBOX_USAGE_H

#include "core/types.h"

#include <sys/types.h>

/* Before the first fork; without it, or if there is no memory, nothing is counted. */
void usage__open(void);
/* As fork(2): the child is counted from here on. */
pid_t usage__fork(void);
/* As waitpid(2): the time of a child that has ended is kept. */
pid_t usage__wait(pid_t pid, int *status, int options);
/* In a child that is not to have the page. */
void usage__forget(void);
/* CPU time in ns of all counted processes, without the caller's own. */
u64 usage__ns(void);
/* The same with the caller's own. */
u64 usage__total_ns(void);

#endif
