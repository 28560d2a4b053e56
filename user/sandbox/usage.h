/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The CPU time of the processes that a recording starts: the attacher, the openers, sonde-examiner and the children
 * that parse files. Several processes fork them, and the worker, which prints the sum, may not read /proc of the
 * others. So the pids of living processes and the CPU time of those that have ended are in a page that all of them
 * share. The CPU clock of a process can be read by its pid without any privilege. Children that parse untrusted bytes
 * do not have the page.
 */
#pragma once

#include "core/types.h"

#include <sys/types.h>

/* Call it before the first fork; without it, or if there is no memory, nothing is counted. */
void usage__open(void);
/* As fork(2), and counts the child from here on. */
pid_t usage__fork(void);
/* As waitpid(2), and adds the CPU time of a child that has ended. */
pid_t usage__wait(pid_t pid, int *status, int options);
/* Unmaps the page in a child that must not have it. */
void usage__forget(void);
/* CPU time in ns of all counted processes, without the caller's own. */
u64 usage__ns(void);
/* The same with the caller's own. */
u64 usage__total_ns(void);
