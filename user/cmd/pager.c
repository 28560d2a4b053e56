// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Three processes: this one prints into a pipe; the child reads from it until it knows whether the screen is large
 * enough, and becomes the pager if it is not; the child's own child then copies the output into the pager. So a pager
 * that can't be started costs nothing, and a short output is printed without one.
 */
#include "cmd/pager.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "util/array.h"
#include "util/sudo.h"

static bool disabled;
static pid_t child; /* 0: none */

/* The beginning of the output, whose size is compared with the screen's. */
struct beginning {
	char *text;
	size_t len;
	u32 rows, column; /* rows that it takes on the screen, and the column of its end */
	bool escape; /* within a sequence that sets a colour */
};

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

static bool write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			return false;
		text += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

static void copy(int from, int to)
{
	char buf[16384];
	ssize_t n;

	while ((n = read(from, buf, sizeof(buf))) > 0 || (n < 0 && errno == EINTR))
		if (n > 0 && !write_all(to, buf, (size_t)n))
			return;
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

/* The child becomes the pager. A command with arguments is run by the shell. */
static void execute(const char *command)
{
	const char *argv[] = { "sh", "-c", command, NULL };

	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	signal(SIGPIPE, cmd__inherited_sigpipe);
	signal(SIGXFSZ, cmd__inherited_sigxfsz);
	if (!strcmp(command, "less -FRX"))
		execlp("less", "less", "-FRX", (char *)NULL);
	else if (!command[strcspn(command, "|&;<>()$`\\\"' \t\n*?[#~=%")])
		execlp(command, command, (char *)NULL);
	else
		execv("/bin/sh", (char *const *)argv);
	signal(SIGPIPE, SIG_IGN);
}

/* Runs the pager, because the output is longer than the screen. */
static void page(const struct beginning *b, int in, const char *command)
{
	int ends[2];
	pid_t copier;

	if (pipe(ends)) {
		write_all(STDOUT_FILENO, b->text, b->len);
		copy(in, STDOUT_FILENO);
		_exit(EXIT_DONE);
	}
	/* before the fork, because the pager may be ready before this process continues */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	copier = fork();
	if (!copier) {
		close(ends[0]);
		if (write_all(ends[1], b->text, b->len))
			copy(in, ends[1]);
		_exit(EXIT_DONE);
	}
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	close(ends[1]);
	close(in);
	if (copier > 0)
		execute(command);
	copy(STDIN_FILENO, STDOUT_FILENO);
	_exit(EXIT_DONE);
}

/* Counts the rows of a screen that the text takes, with those into which long lines are wrapped. */
static void count_rows(struct beginning *b, const char *text, size_t len, u32 width)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '\n') {
			b->rows++;
			b->column = 0;
		} else if (c == '\033' || b->escape) {
			b->escape = c != 'm';
		} else if ((c & 0xc0) != 0x80 && b->column++ == width) {
			b->rows++;
			b->column = 1;
		}
	}
}

/* Runs in the child: reads the output until it is longer than the screen, and prints it or runs the pager. */
static void show(int in, const struct winsize *screen, const char *command)
{
	struct beginning b = {};
	char buf[4096];
	ssize_t n;

	leave_root();
	while ((n = read(in, buf, sizeof(buf))) > 0 || (n < 0 && errno == EINTR)) {
		if (n < 0)
			continue;
		for (ssize_t i = 0; i < n; i++)
			if (!array__push(b.text, b.len, buf[i]))
				_exit(EXIT_FAILED);
		count_rows(&b, buf, (size_t)n, screen->ws_col);
		/* the last row is for the shell's prompt */
		if (b.rows >= screen->ws_row)
			page(&b, in, command);
	}
	write_all(STDOUT_FILENO, b.text, b.len);
	_exit(EXIT_DONE);
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

static void connect_child(const int ends[2], bool errors)
{
	fflush(NULL);
	dup2(ends[1], STDOUT_FILENO);
	/* the pager would overwrite a message */
	if (errors)
		dup2(ends[1], STDERR_FILENO);
	close(ends[0]);
	close(ends[1]);
	atexit(wait_for_pager);
}

void pager__start(struct output_options *options)
{
	const char *command = pager_command();
	struct winsize screen;
	int ends[2];

	cmd__fit_terminal(options);
	if (!command || !isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &screen) || !screen.ws_row ||
	    !screen.ws_col || pipe(ends))
		return;
	child = fork();
	if (!child) {
		close(ends[1]);
		show(ends[0], &screen, command);
	}
	if (child > 0) {
		connect_child(ends, isatty(STDERR_FILENO));
		return;
	}
	child = 0;
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
