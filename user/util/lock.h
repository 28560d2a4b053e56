/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Locks between root's instances of sonde on this machine, which no other user can take: bytes of a file in a folder of
 * root's. A lock is released when its descriptor and all copies are closed, however the process ends. In a container
 * with its own /run sonde knows only the locks there.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define LOCK_SLOTS  0 /* the shim's slots, one byte each */
#define LOCK_INJECT 0x100000000 /* plus the pid: loading into that process */

/* Returns the file's descriptor or negative errno; -EPERM without root. */
int lock__open(void);
/* Takes a lock without waiting; false: another instance holds it. */
bool lock__take(int fd, off_t at);
