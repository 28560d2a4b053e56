/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The file that a command writes: a regular one, mode 0600, owned by the user behind
 * sudo, never over an existing one unless asked. It has no name until it is
 * published, so that a file under the path it is to have is replaced and never
 * written to or followed, and no unfinished one is found there.
 */
#ifndef SONDE_OUTPUT_FILE_H
#define SONDE_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct output {
	int fd;
	int folder; /* that it is to be in: O_PATH */
	char path[4096];
	char draft[32]; /* its name in the folder for the time being, "": none */
	bool created; /* it has its name, so that output__discard may remove it */
	bool unnamed; /* it has no name yet: output__publish gives it */
	bool force;
	dev_t dev;
	ino_t ino;
};

/* Does the path mean this process's standard output? */
bool output__is_stdout(const char *path);
/* path NULL: sonde-DATE-TIME.sonde in the working directory. 0 or negative errno with a message. */
int output__create(struct output *out, const char *path, bool force, char *err, size_t len);
/* Gives the file its name. 0 or negative errno with a message. */
int output__publish(struct output *out, char *err, size_t len);
/* Is the file that was published still there under any name? 0 or -ENOENT with a message. */
int output__check(const struct output *out, char *err, size_t len);
void output__close(struct output *out);
/* Closes and removes what was created. */
void output__discard(struct output *out);

#endif
