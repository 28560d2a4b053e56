/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/* Called for the root and each inode that is reached, links too, with its name. Another result than 0 ends the walk. */
typedef int walk_visit(int fd, const char *name, void *arg);

/*
 * Returns an O_PATH descriptor for a path below a folder of another process, or negative errno. Neither ".." nor a link
 * leads out of the folder, even while others rename folders. openat2(RESOLVE_IN_ROOT) does the same in one call, but a
 * seccomp filter can't see its flags, and it enters each file system before the caller knows its type. visit may be
 * NULL. root remains the caller's. AT_FDCWD: the path is this process's own, so ".." and links lead anywhere.
 */
int walk__below(int root, const char *path, walk_visit *visit, void *arg);
