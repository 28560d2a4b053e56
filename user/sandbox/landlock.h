/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which files a process may open: a filter of system calls can't see their paths. */
#pragma once

/*
 * From now on this process reads files only below the folders (`read`), and opens for writing, and uses ioctl() on,
 * only the files that match the patterns (`write`); it creates, removes and runs none. Both lists end with NULL. It
 * needs no_new_privs. Returns 0 or negative errno: -ENOSYS or -EOPNOTSUPP on kernels without Landlock (before Linux
 * 5.13, or not enabled).
 */
int landlock__restrict(const char *const *read, const char *const *write);
