/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The file that a command writes: mode 0600, owned by the user behind sudo, never over an existing one unless asked. */
#ifndef SONDE_CMD_OUTPUT_H
#define SONDE_CMD_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

struct output {
	int fd;
	char path[4096];
	bool created; /* by us, so that output__discard may remove it */
	bool unnamed; /* has no name yet: output__publish gives it */
	bool force;
};

/* path NULL: sonde-DATE-TIME.sonde in the working directory. 0 or negative errno with a message. */
int output__create(struct output *out, const char *path, bool force, char *err, size_t len);
/*
 * Gives the file its name, when its beginning is written: nobody ever finds it
 * empty, also not if this process is killed. 0 or negative errno with a message.
 */
int output__publish(struct output *out, char *err, size_t len);
void output__close(struct output *out);
/* Closes and removes what was created. */
void output__discard(struct output *out);

#endif
