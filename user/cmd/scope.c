// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "util/file.h"
#include "util/sudo.h"

#define CONFIGURATION "/etc/sonde.conf"
#define COMMAND_LINE  "the command line"

static const char *const scopes[] = { [SCOPE_SELF] = "self", [SCOPE_USER] = "user", [SCOPE_ALL] = "all" };

/* Sets a value unless it was set before: the command line comes first and takes precedence. */
static bool set_scope(struct scope *s, const char *command, const char *value, const char *from)
{
	for (int i = SCOPE_SELF; i <= SCOPE_ALL; i++)
		if (!strcmp(value, scopes[i])) {
			s->kind = s->kind ? s->kind : (enum scope_kind)i;
			s->kind_from = s->kind_from ? s->kind_from : from;
			return true;
		}
	cmd__usage(command, "--scope is self, user or all, not '%s'", value);
	return false;
}

static bool set_answer(enum scope_answer *answer, const char **answer_from, const char *command, const char *option,
		       const char *value, const char *from)
{
	bool no = value && !strcmp(value, "no");

	if (value && !no && strcmp(value, "yes") != 0) {
		cmd__usage(command, "%s is yes or no, not '%s'", option, value);
		return false;
	}
	if (!*answer) {
		*answer = no ? ANSWER_NO : ANSWER_YES;
		*answer_from = from;
	}
	return true;
}

/*
 * Sets the setting with this name. from: the configuration's path; NULL: the value is from the command line. Returns 1,
 * -EINVAL after printing an error, or -ENOENT for an unknown name.
 */
static int set(struct scope *s, const char *command, const char *name, const char *value, const char *from)
{
	bool good;

	if (!strcmp(name, "scope"))
		good = set_scope(s, command, value, from ? from : COMMAND_LINE);
	else if (!strcmp(name, "trusted-files"))
		good = set_answer(&s->trusted_files, &s->trusted_from, command, "--trusted-files", value,
				  from ? from : COMMAND_LINE);
	else if (!strcmp(name, "remote-files"))
		good = set_answer(&s->remote_files, &s->remote_from, command, "--remote-files", value,
				  from ? from : COMMAND_LINE);
	else
		return -ENOENT;
	return good ? 1 : -EINVAL;
}

int scope__option(struct scope *s, const char *command, int option, const char *value)
{
	struct scope fresh = {};
	int ret;

	/* If an option is given more than once, the last one counts: a fresh struct has no earlier value to keep. */
	switch (option) {
	case SCOPE_OPTION_KIND:
		ret = set(&fresh, command, "scope", value, NULL);
		s->kind = fresh.kind;
		s->kind_from = fresh.kind_from;
		return ret;
	case SCOPE_OPTION_TRUSTED:
		ret = set(&fresh, command, "trusted-files", value, NULL);
		s->trusted_files = fresh.trusted_files;
		s->trusted_from = fresh.trusted_from;
		return ret;
	case SCOPE_OPTION_REMOTE:
		ret = set(&fresh, command, "remote-files", value, NULL);
		s->remote_files = fresh.remote_files;
		s->remote_from = fresh.remote_from;
		return ret;
	}
	return 0;
}

/* Applies a line "KEY = VALUE" unless the command line has that setting. */
static bool take_line(struct scope *s, char *line, const char *command, const char *path)
{
	char key[32], value[32], more;
	int ret;

	line[strcspn(line, "#\n")] = '\0';
	if (strspn(line, " \t") == strlen(line))
		return true;
	if (sscanf(line, " %31[a-z-] = %31s %c", key, value, &more) != 2) {
		cmd__error("%s: this is not KEY = VALUE: %.80s", path, line);
		return false;
	}
	ret = set(s, command, key, value, path);
	if (ret == -ENOENT)
		cmd__error("%s: no such key: %s; there are scope, trusted-files and remote-files", path, key);
	return ret > 0;
}

/* Reads the configuration. A file that other users can write is an error; sonde does not continue without it. */
static bool read_configuration(struct scope *s, const char *command)
{
	const char *other = secure_getenv("SONDE_CONF"), *path = other ? other : CONFIGURATION;
	int fd = file__open_trusted(AT_FDCWD, path, 0);
	char line[256];
	bool good;
	FILE *f;

	if (fd == -ENOENT)
		return true;
	if (fd == -EPERM) {
		cmd__error(
			"%s can be written by other users than root: `chown root:root` and `chmod 644` it, or remove it",
			path);
		return false;
	}
	if (fd < 0) {
		cmd__error("%s can't be read: %s", path, strerror(-fd));
		return false;
	}
	f = fdopen(fd, "r");
	good = f != NULL;
	while (good && fgets(line, sizeof(line), f))
		good = take_line(s, line, command, path);
	if (f)
		fclose(f);
	return good;
}

const char *scope__user_name(uid_t uid)
{
	static char text[4096], number[16];
	struct passwd entry = { 0 }, *p = NULL;

	if (!getpwuid_r(uid, &entry, text, sizeof(text), &p) && p)
		return p->pw_name;
	snprintf(number, sizeof(number), "%u", uid);
	return number;
}

/* Adds the configuration and the defaults. Returns false after printing that the user may not have this scope. */
static bool resolve(struct scope *s, const char *command)
{
	bool is_root = !geteuid();
	gid_t group;

	if (!read_configuration(s, command))
		return false;
	s->command = command;
	s->user = getuid();
	s->by_sudo = sudo__user(&s->user, &group);
	/* The configuration's `scope = all` is meant for root: other users get their default instead of an error. */
	if (s->kind == SCOPE_ALL && !is_root && strcmp(s->kind_from, COMMAND_LINE) != 0)
		s->kind = SCOPE_UNSET;
	if (!s->kind) {
		s->is_default = true;
		s->kind = is_root ? SCOPE_ALL : SCOPE_USER;
		s->kind_from = is_root ? "the default for root" : "the default for other users than root";
	} else if (s->kind == SCOPE_ALL && !is_root) {
		cmd__error("--scope all needs root: other users can trace only their own processes (--scope user); "
			   "sudo sonde %s traces all",
			   command);
		return false;
	}
	s->trusted_from = s->trusted_from ? s->trusted_from : "the default";
	s->remote_from = s->remote_from ? s->remote_from : "the default";
	return true;
}

/*
 * Returns the scope's user if the real and the effective user of the process both are that user, else the one of the
 * two that is not. So the process of a setuid program counts as another user's.
 */
static uid_t other_owner(const struct scope *s, u32 pid)
{
	char path[48];
	uid_t real = s->user, effective = s->user;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	file__scan(path, 2, "Uid: %u %u", &real, &effective);
	return real == s->user ? effective : real;
}

bool scope__allows(const struct scope *s, u32 pid, char *why, size_t len)
{
	uid_t owner = s->kind == SCOPE_ALL ? s->user : other_owner(s, pid);

	if (owner == s->user)
		return true;
	if (!why)
		return false;
	snprintf(why, len, "process %u belongs to %s and is left out by --scope user (%s); ", pid,
		 scope__user_name(owner), s->kind_from);
	len -= strlen(why);
	why += strlen(why);
	if (geteuid())
		snprintf(why, len, "`sudo sonde %s` allows it", s->command);
	else
		snprintf(why, len, "--scope all allows it");
	return false;
}

bool scope__apply_to_processes(struct scope *s, const char *command)
{
	if (!resolve(s, command))
		return false;
	if (s->kind != SCOPE_SELF)
		return true;
	/* The configuration's `scope = self` is meant for `record -- CMD`: other commands use `user` instead. */
	if (strcmp(s->kind_from, COMMAND_LINE) != 0) {
		s->kind = SCOPE_USER;
		return true;
	}
	cmd__usage(command, "--scope self is for `sonde record -- CMD`: here it is user or all");
	return false;
}

/* Prints which of the processes of -p the scope leaves out. Returns false if it leaves out each of them. */
static bool check_processes(const struct scope *s, const struct session_args *args)
{
	u32 foreign = 0;
	char why[512];

	for (u32 i = 0; i < args->n_pids; i++) {
		if (scope__allows(s, args->pids[i], why, sizeof(why)))
			continue;
		foreign++;
		cmd__error("%s", why);
	}
	return !foreign || foreign < args->n_pids;
}

static bool apply_self(const struct session_args *args, const char *command, bool launches)
{
	if (launches && !args->n_pids)
		return true;
	cmd__usage(command, launches ? "--scope self traces only the command after --: leave out -p or --scope self" :
				       "--scope self traces the command after --, but there is none");
	return false;
}

bool scope__apply(struct scope *s, struct session_args *args, const char *command, bool launches)
{
	bool is_chosen = s->kind || launches || args->n_pids || args->n_comms || args->n_cgroups;

	if (!resolve(s, command))
		return false;
	/* The default does not limit a command that sonde starts, as it belongs to the user who runs sonde. */
	if (launches && s->is_default)
		s->kind = SCOPE_ALL;
	args->trusted_files = s->trusted_files == ANSWER_YES;
	args->remote_files = s->remote_files == ANSWER_YES;
	if (s->kind == SCOPE_SELF)
		return apply_self(args, command, launches);
	if (s->kind == SCOPE_USER) {
		args->one_user = true;
		args->user = s->user;
		if (!is_chosen || s->by_sudo)
			cmd__error("only processes of the user %s are traced (--scope user)%s",
				   scope__user_name(s->user),
				   geteuid() ? "" : "; --scope all traces those of all users");
		return check_processes(s, args);
	}
	if (s->by_sudo && !is_chosen)
		cmd__error("processes of all users are traced; --scope user leaves out those of users other than %s",
			   scope__user_name(s->user));
	return true;
}
