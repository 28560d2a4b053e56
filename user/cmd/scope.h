/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The policy of all commands that examine or change processes: which users' processes (--scope), in which owners'
 * files probes go (--trusted-files), and whether files are opened whose server may not answer (--remote-files).
 * The command line takes precedence over /etc/sonde.conf, and that over the default: root gets all users'
 * processes, also by sudo; a user with capabilities, but not root, only their own. Files of any owner, and no
 * remote ones.
 */
#ifndef SONDE_CMD_SCOPE_H
#define SONDE_CMD_SCOPE_H

#include "record/session.h"

enum scope_whose { SCOPE_UNSET, SCOPE_SELF, SCOPE_USER, SCOPE_ALL };
enum scope_answer { ANSWER_UNSET, ANSWER_NO, ANSWER_YES };

struct scope {
	enum scope_whose whose;
	enum scope_answer trusted_files, remote_files;
	/* where each comes from: "the command line", "/etc/sonde.conf", "the default for root" */
	const char *whose_from, *trusted_from, *remote_from;
	/* set by scope__resolve */
	const char *command;
	bool by_sudo, usual; /* usual: neither the command line nor the configuration has a scope */
	uid_t user; /* the user who runs sonde, also by sudo */
};

/* For the table of getopt_long, and what it returns for them. */
enum { SCOPE_OPTION_WHOSE = 0x10000, SCOPE_OPTION_TRUSTED, SCOPE_OPTION_REMOTE };
#define SCOPE_OPTIONS                                                               \
	{ "scope", required_argument, NULL, SCOPE_OPTION_WHOSE },                   \
		{ "trusted-files", optional_argument, NULL, SCOPE_OPTION_TRUSTED }, \
	{                                                                           \
		"remote-files", optional_argument, NULL, SCOPE_OPTION_REMOTE        \
	}
/* For the help of commands that put no probes in. */
#define SCOPE_HELP                                                                                                  \
	"      --scope WHOSE   user: the processes of who asks, also by sudo; all: of all users (root's default)\n" \
	"      --remote-files  also files on network and FUSE file systems, whose server may not answer\n"

/* 1: it is one of them and taken; 0: another option; -EINVAL, after a message: it has no such value. */
int scope__option(struct scope *s, const char *command, int option, const char *value);
/*
 * Completes it by the configuration and the user who runs sonde. false, after a message: the user may not have
 * that scope.
 */
bool scope__resolve(struct scope *s, const char *command);
/*
 * The same for a recording: fills in args, in which the processes of -p must be known; launches says whether a
 * command will be started.
 */
bool scope__apply(struct scope *s, struct session_args *args, const char *command, bool launches);
/* The same for commands that examine single processes. */
bool scope__apply_to_processes(struct scope *s, const char *command);
/*
 * Is the process in the resolved scope? If not, why (of size len, or NULL) says which user owns it, what leaves it
 * out and what allows it.
 */
bool scope__allows(const struct scope *s, u32 pid, char *why, size_t len);
/*
 * "ann", or the uid of a user without a name here; valid until the next call. Uses name services: call it before a
 * filter is installed.
 */
const char *scope__user_name(uid_t uid);

#endif
