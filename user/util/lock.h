/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Locks among the sondes that root runs on this machine, which no other user can take: bytes of a file in a folder
 * that belongs to root. A lock is released when its descriptor and all copies are closed, however the process
 * ends. In a container with a /run of its own sonde sees only the locks taken there.
 */
#ifndef SONDE_UTIL_LOCK_H
#define SONDE_UTIL_LOCK_H

#include <stdbool.h>
#include <sys/types.h>

#define LOCK_SLOTS  0 /* the shim's slots, a byte each */
#define LOCK_INJECT 0x100000000 /* plus the pid: the lock on loading into that process */

/* The file's descriptor or negative errno: without root there is none. */
int lock__open(void);
/* Does not wait; false: another sonde has it. */
bool lock__take(int fd, off_t at);

#endif
