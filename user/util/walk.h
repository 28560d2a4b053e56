/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SONDE_UTIL_WALK_H
#define SONDE_UTIL_WALK_H

/* Called for the root and for each inode that is reached from it, links too. Not 0 ends the walk with that. */
typedef int walk_visit(int fd, void *arg);

/*
 * An O_PATH descriptor of what a path names below a folder that belongs to another process: neither ".." nor a link leads out
 * of it, also when others rename folders meanwhile. openat2(RESOLVE_IN_ROOT) does the same in one call, but a seccomp
 * filter can't see its flags, and it asks each file system on the way before the caller knows which that is. visit may be
 * NULL. root stays the caller's. Negative errno on failure.
 */
int walk__below(int root, const char *path, walk_visit *visit, void *arg);

#endif
