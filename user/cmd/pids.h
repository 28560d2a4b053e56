/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The processes that a command line names: "1", "1,2", "1 2", one a line; several arguments of these. */
#ifndef SONDE_CMD_PIDS_H
#define SONDE_CMD_PIDS_H

#include "core/types.h"

#define PIDS_MAX 256

struct pid_list {
	u32 list[PIDS_MAX];
	u32 n;
};

/* Adds the processes of a text, each once; false: it has printed what is wrong. option: "-p", or "PID" */
bool pid_list__add(struct pid_list *pids, const char *command, const char *option, const char *text);
/* Does the text hold nothing but process ids? */
bool pid_list__parses(const char *text);
/*
 * Adds the arguments behind an option's value that are process ids, as a shell splits `-p $(pgrep -f x)`.
 * arguments ends with NULL. Returns how many arguments that were, or -EINVAL: it has printed what is wrong.
 */
int pid_list__add_arguments(struct pid_list *pids, const char *command, const char *option, char **arguments);

#endif
