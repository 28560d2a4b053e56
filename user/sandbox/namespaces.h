/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Empty namespaces for a process. */
#pragma once

#include <stddef.h>

/*
 * Leaves the host's network, IPC objects and files: the root is then an empty folder except for /proc, which shows
 * only this process once it has an account of its own. Open descriptors remain usable. What could not be done is
 * appended to lacks, as text; if the root can't be left, its files are at least not writable.
 */
void namespaces__leave(char *lacks, size_t len);
