/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shorter RCU grace periods while perf events are closed. For each uprobe that is a perf event (before Linux 6.6) the kernel
 * waits for several of them, under locks that all such events share: closing them side by side does not help.
 * /sys/kernel/rcu_expedited has all of the system's grace periods ended by interrupts to the CPUs instead of by waiting for ticks.
 */
#ifndef SONDE_ATTACH_GRACE_H
#define SONDE_ATTACH_GRACE_H

#include <stdbool.h>

/* Its descriptor; negative where it can't be written, as in most containers. */
int grace__open(void);
/* False: somebody else has set it, or it can't be set. True: call grace__restore() soon. */
bool grace__shorten(int fd);
void grace__restore(int fd);

#endif
