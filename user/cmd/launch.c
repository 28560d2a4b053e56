// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/launch.h"

#include "cmd/cmd.h"
#include "cmd/shim.h"

#include "elf/needed.h"
#include "record/session.h"
#include "util/array.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int describe_failure(int error, const char *name, char *err, size_t len)
{
	snprintf(err, len, "cannot run %s: %s", name, error == ENOENT ? "no such program" : strerror(error));
	return error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE;
}

/* Finds a script's missing interpreter now; the kernel would report it only after the recording began. */
static int check_interpreter(const char *program, char *err, size_t len)
{
	char head[256], name[sizeof(head) + 4200], *interpreter;
	int fd = open(program, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? 0 : read(fd, head, sizeof(head) - 1);

	if (fd >= 0)
		close(fd);
	head[n < 0 ? 0 : n] = '\0';
	if (strncmp(head, "#!", 2))
		return 0;
	interpreter = head + 2 + strspn(head + 2, " \t");
	interpreter[strcspn(interpreter, " \t\n")] = '\0';
	if (!access(interpreter, X_OK))
		return 0;
	snprintf(name, sizeof(name), "%s, whose interpreter is '%s'", program, interpreter);
	return describe_failure(errno, name, err, len);
}

int launch__find(struct launch *l, char **argv, char *err, size_t len)
{
	int ret = needed__program(argv[0], l->program, sizeof(l->program));

	l->argv = argv;
	if (ret)
		return describe_failure(ret == -ENOTDIR ? ENOENT : -ret, argv[0], err, len);
	return check_interpreter(l->program, err, len);
}

/* Runs in the child. */
static void wait_and_run(const struct launch *l, int go, int failed)
{
	char **argv = l->argv;
	char byte;
	int error;

	/* If sonde is killed before it lets the command run, the pipe is closed without a byte. */
	if (read(go, &byte, 1) != 1)
		_exit(EXIT_OWN_FAILURE);
	signal(SIGPIPE, cmd__inherited_sigpipe);
	signal(SIGXFSZ, cmd__inherited_sigxfsz);
	if (l->shim[0])
		shim__set_environment(l->shim, l->shim_needs, l->functions);
	execvp(argv[0], argv);
	error = errno;
	if (write(failed, &error, sizeof(error)) != sizeof(error))
		_exit(EXIT_OWN_FAILURE);
	_exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE);
}

int launch__fork(struct launch *l)
{
	int go[2], failed[2], ret;

	if (pipe2(go, O_CLOEXEC))
		return -errno;
	if (pipe2(failed, O_CLOEXEC)) {
		ret = -errno;
		close(go[0]);
		close(go[1]);
		return ret;
	}
	l->pid = fork();
	if (!l->pid) {
		close(go[1]);
		close(failed[0]);
		wait_and_run(l, go[0], failed[1]);
	}
	ret = l->pid < 0 ? -errno : 0;
	close(go[0]);
	close(failed[1]);
	l->start_pipe = go[1];
	l->error_pipe = failed[0];
	if (l->pid < 0)
		l->pid = 0;
	return ret;
}

static void map_file(int fd, void *arg)
{
	struct launch *l = arg;
	void *at;

	if (!array__room(l->maps, l->n_maps))
		return;
	/* One page is enough: the mapping only has to appear in /proc/self/maps. */
	at = mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return;
	l->maps[l->n_maps++] = at;
}

void launch__map(struct launch *l)
{
	int fd = l->shim[0] ? open(l->shim, O_RDONLY | O_CLOEXEC) : -1;

	needed__each(l->program, map_file, l);
	if (fd >= 0) {
		map_file(fd, l);
		close(fd);
	}
}

void launch__unmap(struct launch *l)
{
	for (u32 i = 0; i < l->n_maps; i++)
		munmap(l->maps[i], 1);
	free(l->maps);
	l->maps = NULL;
	l->n_maps = 0;
}

int launch__go(struct launch *l, char *err, size_t len)
{
	sighandler_t before;
	int error = 0;
	ssize_t n;

	/* Ctrl-C may have ended the child before it ran the command. */
	before = signal(SIGPIPE, SIG_IGN);
	n = write(l->start_pipe, "", 1);
	signal(SIGPIPE, before);
	close(l->start_pipe);
	/* A successful execve closes the other end. */
	do {
		n = read(l->error_pipe, &error, sizeof(error));
	} while (n < 0 && errno == EINTR);
	close(l->error_pipe);
	l->start_pipe = l->error_pipe = 0;
	if (n != sizeof(error))
		return 0;
	launch__ended(l, true);
	return describe_failure(error, l->argv[0], err, len);
}

void launch__signal(struct launch *l, int sig)
{
	if (!l->pid || l->has_ended)
		return;
	/* Without its privileges this process may not signal the command; the session may. */
	if (!l->session || session__signal(l->session, l->pid, sig))
		kill(l->pid, sig);
}

bool launch__ended(struct launch *l, bool wait)
{
	int status;

	if (!l->pid || l->has_ended)
		return true;
	if (waitpid(l->pid, &status, wait ? 0 : WNOHANG) != l->pid)
		return false;
	l->has_ended = true;
	l->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	return true;
}

void launch__abandon(struct launch *l)
{
	if (!l->pid || l->has_ended || !l->start_pipe)
		return;
	close(l->start_pipe);
	close(l->error_pipe);
	l->start_pipe = l->error_pipe = 0;
	while (!launch__ended(l, true))
		;
}
