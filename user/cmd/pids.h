/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Process ids on a command line: "1", "1,2", "1 2" or one per line, in one or several arguments. */
#pragma once

#include "core/types.h"

#define PIDS_MAX 256

struct pid_list {
	u32 list[PIDS_MAX];
	u32 n;
};

/* Adds the ids in text, each once; returns false after printing an error about option ("-p" or "PID"). */
bool pid_list__add(struct pid_list *pids, const char *command, const char *option, const char *text);
/*
 * Adds the ids in the value of -p, which getopt has just returned, and in the arguments behind it that are process ids,
 * as in `-p $(pgrep -f x)`; getopt continues behind these. Returns false after printing an error.
 */
bool pid_list__add_option(struct pid_list *pids, const char *command, char **argv);
