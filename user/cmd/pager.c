// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/pager.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "util/sudo.h"

static bool disabled;
static pid_t child; /* 0: none */

void pager__disable(void)
{
	disabled = true;
}

/* Returns the command that pages; NULL: no pager. */
static const char *pager_command(void)
{
	const char *own = secure_getenv("SONDE_PAGER"), *any = secure_getenv("PAGER"), *term = secure_getenv("TERM");
	const char *command = own ? own : any ? any : "less -FRX";

	if (disabled || !*command || !strcmp(command, "cat") || !term || !strcmp(term, "dumb"))
		return NULL;
	return command;
}

/* Pagers run as the user who started sonde, not as root, as they can run other programs. */
static void leave_root(void)
{
	uid_t uid;
	gid_t gid;

	if (geteuid())
		return;
	/* if the user is root, less must at least not run programs or write files */
	setenv("LESSSECURE", "1", 1);
	if (sudo__user(&uid, &gid) && (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid)))
		_exit(EXIT_FAILED);
}

/* The child becomes the pager. The shell runs a command with arguments. cat takes the place of what is not there. */
static void __attribute__((noreturn)) execute(const char *command)
{
	leave_root();
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	signal(SIGPIPE, cmd__inherited_sigpipe);
	signal(SIGXFSZ, cmd__inherited_sigxfsz);
	if (!strcmp(command, "less -FRX"))
		execlp("less", "less", "-FRX", (char *)NULL);
	else if (command[strcspn(command, "|&;<>()$`\\\"' \t\n*?[#~=%")])
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	else
		execlp(command, command, (char *)NULL);
	execlp("cat", "cat", (char *)NULL);
	_exit(EXIT_FAILED);
}

/* Runs when this process ends. */
static void wait_for_pager(void)
{
	pager__printing();
	fflush(stdout);
	fflush(stderr);
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

void pager__start(struct output_options *options)
{
	const char *command = pager_command();
	int ends[2];

	cmd__fit_terminal(options);
	if (!command || !isatty(STDOUT_FILENO) || pipe(ends))
		return;
	fflush(NULL);
	child = fork();
	if (!child) {
		dup2(ends[0], STDIN_FILENO);
		close(ends[0]);
		close(ends[1]);
		execute(command);
	}
	if (child > 0) {
		dup2(ends[1], STDOUT_FILENO);
		/* the pager would overwrite a message */
		if (isatty(STDERR_FILENO))
			dup2(ends[1], STDERR_FILENO);
		atexit(wait_for_pager);
	} else {
		child = 0;
	}
	close(ends[0]);
	close(ends[1]);
}

void pager__printing(void)
{
	if (!child)
		return;
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
}
