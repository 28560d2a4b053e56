// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach/fetcher.h"

#include "elf/debuginfod.h"
#include "sandbox/privileges.h"
#include "sandbox/syscalls.h"
#include "sandbox/usage.h"
#include "util/signals.h"
#include "sandbox/message.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ID_MAX	  256 /* with its NUL */
#define IDLE_MS	  20
#define ANSWER_MS ((DEBUGINFOD_LIMIT_S + 5) * 1000) /* the process itself gives up on a server earlier */
#define LACKS_MAX 256
#define ENDS_MS	  200
#define SOCKET_FD 3

struct fetcher {
	int sock; /* -1: it did not answer, and gets no more requests */
	pid_t pid;
	int refused;
};

struct answer {
	s32 result;
	s32 refused; /* syscalls__refused() */
	char lacks[LACKS_MAX]; /* filled in the reply to an empty build id */
};

/* In the child: closes all descriptors except for the socket. The trace may be standard output. */
static bool close_others(int sock)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(sock, SOCKET_FD) != SOCKET_FD)
		return false;
	for (int fd = 0; fd < SOCKET_FD; fd++)
		if (dup2(null, fd) != fd)
			return false;
	return !close_range(SOCKET_FD + 1, ~0U, 0);
}

static void answer(const char *id, const char *lacks)
{
	struct answer a = {};
	int fd = *id ? debuginfod__fetch(id) : -1;

	snprintf(a.lacks, sizeof(a.lacks), "%s", lacks);
	a.result = *id && fd < 0 ? fd : 0;
	a.refused = syscalls__refused();
	message__send(SOCKET_FD, &a, sizeof(a), fd < 0 ? -1 : fd);
	if (fd >= 0)
		close(fd);
}

static void __attribute__((noreturn)) serve(int sock)
{
	char id[ID_MAX], lacks[LACKS_MAX] = "";
	ssize_t n;
	int fd;

	signals__withstand("sonde-fetcher");
	if (!close_others(sock) || privileges__fetcher(lacks, sizeof(lacks)))
		_exit(1);
	/* the kernel clears this setting when the account changes */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while ((n = message__receive(SOCKET_FD, id, sizeof(id), &fd)) > 0) {
		if (fd >= 0)
			close(fd);
		if (id[n - 1])
			break;
		answer(id, lacks);
	}
	_exit(0);
}

int fetcher__start(struct fetcher **out)
{
	struct fetcher *f = calloc(1, sizeof(*f));
	int sock[2], err;

	*out = NULL;
	if (!f)
		return -ENOMEM;
	f->refused = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock)) {
		err = -errno;
		free(f);
		return err;
	}
	f->pid = usage__fork();
	if (!f->pid) {
		usage__forget();
		serve(sock[1]);
	}
	err = f->pid < 0 ? -errno : 0;
	close(sock[1]);
	f->sock = sock[0];
	if (err) {
		close(f->sock);
		free(f);
		return err;
	}
	*out = f;
	return 0;
}

/*
 * Returns 0 or negative errno. After an error no more requests are made, because a late reply could be taken for that
 * to another request.
 */
static int await(struct fetcher *f, const volatile sig_atomic_t *stop, void (*idle)(void *arg), void *arg)
{
	struct pollfd p = { .fd = f->sock, .events = POLLIN };
	u64 begin = message__now();
	int err = 0;

	while (!err && poll(&p, 1, IDLE_MS) <= 0) {
		if (idle)
			idle(arg);
		if (stop && *stop)
			err = -ECANCELED;
		else if (message__now() - begin > ANSWER_MS)
			err = -ETIMEDOUT;
	}
	return err;
}

static void end(struct fetcher *f)
{
	close(f->sock);
	f->sock = -1;
}

static int ask(struct fetcher *f, const char *id, struct answer *a, int *fd, const volatile sig_atomic_t *stop,
	       void (*idle)(void *arg), void *arg)
{
	int err = -EPIPE;

	*fd = -1;
	if (f->sock < 0 || strlen(id) >= ID_MAX)
		return -EPIPE;
	if (!message__send(f->sock, id, strlen(id) + 1, -1))
		err = await(f, stop, idle, arg);
	if (!err && message__receive(f->sock, a, sizeof(*a), fd) != sizeof(*a))
		err = -EPIPE;
	if (err) {
		if (*fd >= 0)
			close(*fd);
		end(f);
		return err;
	}
	if (f->refused < 0)
		f->refused = a->refused;
	a->lacks[sizeof(a->lacks) - 1] = '\0';
	return 0;
}

int fetcher__fetch(struct fetcher *f, const char *build_id, const volatile sig_atomic_t *stop, void (*idle)(void *arg),
		   void *arg)
{
	struct answer a;
	struct stat st;
	int fd, err = *build_id ? ask(f, build_id, &a, &fd, stop, idle, arg) : -ENOENT;

	if (err)
		return err;
	/* servers may have compromised the process, so the descriptor may be anything */
	if (!a.result && fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode))
		return fd;
	if (fd >= 0)
		close(fd);
	return a.result < 0 ? a.result : -EINVAL;
}

void fetcher__lacks(struct fetcher *f, char *out, size_t len)
{
	struct answer a;
	int fd;

	*out = '\0';
	if (ask(f, "", &a, &fd, NULL, NULL, NULL))
		return;
	if (fd >= 0)
		close(fd);
	snprintf(out, len, "%s", a.lacks);
}

int fetcher__refused(const struct fetcher *f)
{
	return f->refused;
}

void fetcher__free(struct fetcher *f)
{
	u64 begin = message__now();

	if (!f)
		return;
	if (f->sock >= 0)
		end(f);
	/* a process that still waits for a server is killed by the kernel when this one ends */
	while (!usage__wait(f->pid, NULL, WNOHANG) && message__now() - begin < ENDS_MS)
		usleep(1000);
	free(f);
}
