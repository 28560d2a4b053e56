/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which users can decide what is found at a path. The shim loads libraries at a moment that the process did not choose, so
 * it loads none that a user could have put there who could not change what the process runs before.
 */
#ifndef SHIM_WRITERS_H
#define SHIM_WRITERS_H

#include <stdbool.h>
#include <sys/stat.h>

/* Beside root and the process's own user, whose writing does no harm. */
struct writers {
	int any_but_all; /* everybody's but what all users may write to */
	uid_t owner; /* (uid_t)-1: no other's */
	gid_t group; /* (gid_t)-1: no group but root's */
};

/*
 * The status as the kernel has it: stat is a function of glibc since 2.33 alone, and was another one before. path "": that of
 * what is open.
 */
bool file__status(int fd, const char *path, struct stat *st);
/*
 * Can a user who is not among them decide what is in a folder, or (a file's path) what is in the file? A relative path
 * begins in the current folder. What is not there counts as what could be made.
 */
int path__is_open_to_others(const char *path, const struct writers *writers);
/*
 * Who can write to the folder of a library that the process has loaded by this absolute path. -1: any user could have put the
 * folder there.
 */
int writers__of_folder(const char *folder, struct writers *writers);

#endif
