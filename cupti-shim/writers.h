/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which users can decide what is found at a path. The shim loads libraries at a moment that the process did not
 * choose, so it loads none that could have been put there by a user who could not change before what the process
 * runs.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

/* Users beside root and the process's own user whose writing does no harm. */
struct writers {
	int any_but_all; /* any user, but not a file or folder that all users may write to */
	uid_t owner; /* (uid_t)-1: no other user */
	gid_t group; /* (gid_t)-1: no group except root's */
};

/*
 * The status as the kernel returns it: stat has been a function of glibc only since 2.33, and was another one before.
 * path "": that of the open file.
 */
bool file__status(int fd, const char *path, struct stat *st);
/*
 * Can a user other than these decide what is in a folder, or (for a file's path) in the file? A relative path begins
 * in the current folder. What does not exist counts as what could be created.
 */
int path__is_open_to_others(const char *path, const struct writers *writers);
/*
 * The users who can write to the folder of a library that the process has loaded by this absolute path. Returns -1 if
 * any user could have put the folder there.
 */
int writers__of_folder(const char *folder, struct writers *writers);
