/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Namespaces of a process's own, with nothing in them. */
#ifndef SONDE_SANDBOX_NAMESPACES_H
#define SONDE_SANDBOX_NAMESPACES_H

#include <stddef.h>

/*
 * Leaves the host's network, IPC objects and files: the root is then an empty folder but for /proc, which has this
 * process alone once it has an account of its own. Descriptors stay what they are. What can't be had is added to
 * lacks, as text; where the root can't be left, its files can no longer be written.
 */
void namespaces__leave(char *lacks, size_t len);

#endif
