/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The policy of commands that examine or change processes: which users' processes are traced (--scope), which users'
 * files get probes (--trusted-files), and whether files on remote servers, which may not answer, are opened
 * (--remote-files). The command line takes
 * precedence over /etc/sonde.conf, and that over the default: root, also by sudo, traces all users' processes, and
 * users with capabilities their own; probes go into files of any owner, and remote files are not opened.
 */
#pragma once

#include "record/session.h"

enum scope_kind { SCOPE_UNSET, SCOPE_SELF, SCOPE_USER, SCOPE_ALL };
enum scope_answer { ANSWER_UNSET, ANSWER_NO, ANSWER_YES };

struct scope {
	enum scope_kind kind;
	enum scope_answer trusted_files, remote_files;
	/* the source of each: "the command line", "/etc/sonde.conf", "the default for root" */
	const char *kind_from, *trusted_from, *remote_from;
	/* set by scope__apply */
	const char *command;
	bool by_sudo, is_default; /* is_default: neither the command line nor the configuration has a scope */
	uid_t user; /* the user who runs sonde, also by sudo */
};

/* Entries for getopt_long's table, and the values that it returns for them. */
enum { SCOPE_OPTION_KIND = 0x10000, SCOPE_OPTION_TRUSTED, SCOPE_OPTION_REMOTE };
#define SCOPE_OPTIONS                                                               \
	{ "scope", required_argument, NULL, SCOPE_OPTION_KIND },                    \
		{ "trusted-files", optional_argument, NULL, SCOPE_OPTION_TRUSTED }, \
	{                                                                           \
		"remote-files", optional_argument, NULL, SCOPE_OPTION_REMOTE        \
	}
/* Help of commands that attach no probes. */
#define SCOPE_HELP                                                                                                    \
	"      --scope SCOPE   user: only the caller's processes, also by sudo; all: of all users (root's default)\n" \
	"      --remote-files  also files on network and FUSE file systems, whose server may not answer\n"

/* Returns 1 if it took the option, 0 if the option is not one of these, -EINVAL after printing an error. */
int scope__option(struct scope *s, const char *command, int option, const char *value);
/* Resolves a recording's scope and fills in args, which must have the processes of -p. launches: `-- CMD` is given. */
bool scope__apply(struct scope *s, struct session_args *args, const char *command, bool launches);
/* Resolves the scope of a command that examines single processes. */
bool scope__apply_to_processes(struct scope *s, const char *command);
/* Is the process in the resolved scope? If not, why (len bytes, or NULL) gets its owner, the reason and the remedy. */
bool scope__allows(const struct scope *s, u32 pid, char *why, size_t len);
/*
 * Returns the user's name or number; valid until the next call. Call it before a seccomp filter: it uses name services.
 */
const char *scope__user_name(uid_t uid);
