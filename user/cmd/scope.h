/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whose processes are traced, and in whose files probes go: --scope and --trusted-files, and what /etc/sonde.conf says
 * where the command line does not. Without either, root traces all users' processes, also behind sudo, where a line
 * says so; a user with capabilities, but not root, only their own.
 */
#ifndef SONDE_CMD_SCOPE_H
#define SONDE_CMD_SCOPE_H

#include "record/session.h"

enum scope_whose { SCOPE_UNSET, SCOPE_SELF, SCOPE_USER, SCOPE_ALL };
enum scope_files { FILES_UNSET, FILES_ANY, FILES_TRUSTED };

struct scope {
	enum scope_whose whose;
	enum scope_files files;
};

/* false, after a message: no such value. */
bool scope__parse(struct scope *s, const char *command, const char *word);
/* word: of --trusted-files=WORD, NULL: without one. */
bool scope__parse_files(struct scope *s, const char *command, const char *word);
/*
 * Completes it by the configuration and by who asks, and fills in args; its processes (-p) must be known, launches says
 * whether a command will be started. false, after a message: it can't be had.
 */
bool scope__apply(struct scope *s, struct session_args *args, const char *command, bool launches);

#endif
