// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "util/sudo.h"

#define CONFIGURATION "/etc/sonde.conf"

static const char *const scopes[] = { [SCOPE_SELF] = "self", [SCOPE_USER] = "user", [SCOPE_ALL] = "all" };

bool scope__parse(struct scope *s, const char *command, const char *word)
{
	for (int i = SCOPE_SELF; i <= SCOPE_ALL; i++)
		if (!strcmp(word, scopes[i])) {
			s->whose = (enum scope_whose)i;
			return true;
		}
	cmd__usage(command, "--scope is self, user or all, not '%s'", word);
	return false;
}

bool scope__parse_files(struct scope *s, const char *command, const char *word)
{
	if (word && strcmp(word, "yes") != 0 && strcmp(word, "no") != 0) {
		cmd__usage(command, "--trusted-files is yes or no, not '%s'", word);
		return false;
	}
	s->files = word && !strcmp(word, "no") ? FILES_ANY : FILES_TRUSTED;
	return true;
}

/* One "KEY = VALUE", where the command line left it open. */
static bool take_line(struct scope *s, char *line, const char *command, const char *path)
{
	struct scope one = {};
	char key[32], value[32], more;

	line[strcspn(line, "#\n")] = '\0';
	if (strspn(line, " \t") == strlen(line))
		return true;
	if (sscanf(line, " %31[a-z-] = %31s %c", key, value, &more) != 2) {
		cmd__error("%s: this is not KEY = VALUE: %.80s", path, line);
		return false;
	}
	if (!strcmp(key, "scope")) {
		if (!scope__parse(&one, command, value))
			return false;
		s->whose = s->whose ? s->whose : one.whose;
		return true;
	}
	if (!strcmp(key, "trusted-files")) {
		if (!scope__parse_files(&one, command, value))
			return false;
		s->files = s->files ? s->files : one.files;
		return true;
	}
	cmd__error("%s: no such key: %s; there are scope and trusted-files", path, key);
	return false;
}

/* What others could have written is not followed, and not passed over either. */
static bool read_configuration(struct scope *s, const char *command)
{
	const char *other = getenv("SONDE_CONF"), *path = other ? other : CONFIGURATION;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	char line[256];
	struct stat st;
	bool good;
	FILE *f;

	if (fd < 0 && errno == ENOENT)
		return true;
	if (fd < 0) {
		cmd__error("%s can't be read: %s", path, strerror(errno));
		return false;
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (st.st_uid && st.st_uid != geteuid()) || st.st_mode & 022) {
		cmd__error("%s is not root's alone to write: `chown root:root` and `chmod 644` it, or remove it", path);
		close(fd);
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

/* "ann", or the number of a user who has no name here. */
static const char *user_name(uid_t uid)
{
	static char text[4096], number[16];
	struct passwd entry = { 0 }, *p = NULL;

	if (!getpwuid_r(uid, &entry, text, sizeof(text), &p) && p)
		return p->pw_name;
	snprintf(number, sizeof(number), "%u", uid);
	return number;
}

/* Processes of -p that the scope leaves out: false, if that is all of them. */
static bool check_processes(const struct session_args *args, uid_t user)
{
	u32 foreign = 0;

	for (u32 i = 0; i < args->n_pids; i++) {
		char path[32];
		struct stat st;

		snprintf(path, sizeof(path), "/proc/%u", args->pids[i]);
		if (stat(path, &st) || st.st_uid == user)
			continue;
		foreign++;
		cmd__error("process %u belongs to %s and is left out by --scope user; --scope all traces it",
			   args->pids[i], user_name(st.st_uid));
	}
	return !foreign || foreign < args->n_pids;
}

static bool apply_self(const struct session_args *args, const char *command, bool launches)
{
	if (launches && !args->n_pids)
		return true;
	cmd__usage(command, launches ? "--scope self is the command behind -- alone: leave -p out, or the scope" :
				       "--scope self traces the command behind --, and there is none");
	return false;
}

bool scope__apply(struct scope *s, struct session_args *args, const char *command, bool launches)
{
	bool asked = s->whose || launches || args->n_pids || args->n_comms || args->n_cgroups, by_sudo,
	     is_root = !geteuid();
	uid_t user = getuid();
	gid_t group;

	if (!read_configuration(s, command))
		return false;
	by_sudo = sudo__user(&user, &group);
	if (!s->whose)
		s->whose = is_root || launches ? SCOPE_ALL : SCOPE_USER;
	else if (s->whose == SCOPE_ALL && !is_root) {
		cmd__error(
			"--scope all is root's: a user without root's rights traces their own processes (--scope user); "
			"sudo sonde %s traces all",
			command);
		return false;
	}
	args->trusted_files = s->files == FILES_TRUSTED;
	if (s->whose == SCOPE_SELF)
		return apply_self(args, command, launches);
	if (s->whose == SCOPE_USER) {
		args->one_user = true;
		args->user = user;
		if (!asked || by_sudo)
			cmd__error("processes of %s alone are traced (--scope user)%s", user_name(user),
				   is_root ? "; --scope all traces those of all users" : "");
		return check_processes(args, user);
	}
	if (by_sudo && !asked)
		cmd__error("processes of all users are traced; --scope user leaves out those that are not %s's",
			   user_name(user));
	return true;
}
