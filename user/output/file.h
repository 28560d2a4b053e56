/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The file that a command writes. Standard output, /dev/null and /dev/full are used as they are. Any other file is
 * created: regular, mode 0600, owned by the user behind sudo. An existing file is replaced only if requested. The file
 * has no name until it is published: so an existing file at its path is never written to or followed, and no unfinished
 * file is found there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct output {
	int fd;
	int dir; /* the directory that will contain it, opened with O_PATH */
	char path[4096];
	char temporary[32]; /* its temporary name in `dir`; "": none */
	bool created; /* it has its name, so that output__discard may remove it */
	bool unnamed; /* it has no name yet: output__publish gives it */
	bool force;
	dev_t dev;
	ino_t ino;
};

/* Writes sonde-DATE-TIME.sonde for the current time into buf. */
void output__default_path(char *buf, size_t len);
/* Is the path another name of this process's standard output? */
bool output__is_stdout(const char *path);
/* Creates the file; path NULL: sonde-DATE-TIME.sonde in this directory. Returns 0 or negative errno with a message. */
int output__create(struct output *out, const char *path, bool force, char *err, size_t len);
/* Gives the file its name. Returns 0 or negative errno with a message. */
int output__publish(struct output *out, char *err, size_t len);
/* Checks that the published file still has a name. Returns 0 or -ENOENT with a message. */
int output__check(const struct output *out, char *err, size_t len);
void output__close(struct output *out);
/* Closes the file and removes it if it was created. */
void output__discard(struct output *out);
