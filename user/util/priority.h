/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A real-time priority for the moments in which users wait: while a recording starts and ends. Niceness does not help
 * beside the processes of other sessions and cgroups, among which the kernel shares the CPUs first.
 */
#pragma once

/*
 * For this process and those that it forks from now on. One that computes for 0.5 s without waiting for anything
 * returns to the usual priority by itself. Without the right to it (CAP_SYS_NICE) nothing changes.
 */
void priority__raise(void);
/* Returns to the usual priority. A process that once raised it may raise it again without privileges. */
void priority__lower(void);
