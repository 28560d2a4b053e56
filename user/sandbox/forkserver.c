// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sandbox/message.h"
#include "sandbox/sandbox_private.h"
#include "sandbox/usage.h"
#include "util/priority.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN_MAX 64 /* children at once */
#define DYING_MAX    64 /* killed children at once; more of them, stuck in a file system, are abandoned */
#define DYING_MS     400 /* ms that the children have to end */
#define ENDING_MS    500 /* ms that the server has to end */

struct forkserver {
	int sock;
	pid_t pid;
	bool used[CHILDREN_MAX];
};

struct command {
	u32 number; /* of the child */
	enum { CHILD_FORK, CHILD_END, LOWER } op; /* CHILD_FORK: the message carries its socket */
};

/* The state of the server process. */
struct server {
	int sock;
	pid_t children[CHILDREN_MAX]; /* 0: none */
	pid_t dying[DYING_MAX]; /* killed, not ended yet; 0: none */
	sandbox_serve *serve;
	void *arg;
};

static void forget(pid_t *list, u32 n, pid_t pid)
{
	for (u32 i = 0; i < n; i++)
		if (list[i] == pid)
			list[i] = 0;
}

/* The kernel may reuse the pid of a child once it is waited for, so it is removed from the lists here. */
static void reap(struct server *s)
{
	pid_t pid;

	while ((pid = usage__wait(-1, NULL, WNOHANG)) > 0) {
		forget(s->children, CHILDREN_MAX, pid);
		forget(s->dying, DYING_MAX, pid);
	}
}

static u32 n_dying(const struct server *s)
{
	u32 n = 0;

	for (u32 i = 0; i < DYING_MAX; i++)
		n += s->dying[i] > 0;
	return n;
}

static void end_child(struct server *s, u32 number)
{
	pid_t *pid = &s->children[number];

	if (*pid <= 0)
		return;
	kill(*pid, SIGKILL);
	/* it is waited for later: a child that reads from a file system that does not answer can't end */
	for (u32 i = 0; i < DYING_MAX; i++)
		if (!s->dying[i]) {
			s->dying[i] = *pid;
			break;
		}
	*pid = 0;
}

/* false: the process that sends requests has ended. */
static bool serve_one(struct server *s)
{
	struct command c;
	int sock;

	if (message__receive(s->sock, &c, sizeof(c), &sock) != sizeof(c))
		return false;
	reap(s);
	if (c.op == LOWER)
		priority__lower();
	else if (c.number < CHILDREN_MAX)
		end_child(s, c.number);
	if (sock < 0)
		return true;
	if (c.number < CHILDREN_MAX && c.op == CHILD_FORK) {
		s->children[c.number] = usage__fork();
		if (!s->children[c.number])
			sandbox__serve(sock, s->serve, s->arg);
	}
	/* the closed socket shows the other process that there is no child */
	close(sock);
	return true;
}

static void __attribute__((noreturn)) run(struct server *s)
{
	/* the server ends when its socket is closed; signals to the whole group are not meant for it */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	prctl(PR_SET_NAME, "sonde-examiner");
	close_range(0, s->sock - 1, 0);
	close_range(s->sock + 1, ~0u, 0);
	while (serve_one(s))
		;
	/* the init of a container, which would inherit the children, may not wait for them */
	for (u32 i = 0; i < CHILDREN_MAX; i++)
		end_child(s, i);
	reap(s);
	for (u32 ms = 0; ms < DYING_MS && n_dying(s); ms++) {
		usleep(1000);
		reap(s);
	}
	_exit(0);
}

struct forkserver *forkserver__start(sandbox_serve *serve, void *arg, void (*forget)(void *arg))
{
	struct forkserver *f = calloc(1, sizeof(*f));
	struct server server = { .serve = serve, .arg = arg };
	int pair[2];

	if (!f || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		free(f);
		return NULL;
	}
	server.sock = pair[1];
	f->sock = pair[0];
	f->pid = usage__fork();
	if (!f->pid) {
		forget(arg);
		run(&server);
	}
	close(pair[1]);
	if (f->pid > 0)
		return f;
	close(f->sock);
	free(f);
	return NULL;
}

int forkserver__fork(struct forkserver *f, struct sandbox *out)
{
	struct command c = {};
	int pair[2], err;

	*out = SANDBOX_NONE;
	while (c.number < CHILDREN_MAX && f->used[c.number])
		c.number++;
	if (c.number == CHILDREN_MAX)
		return -EAGAIN;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	err = message__send(f->sock, &c, sizeof(c), pair[1]);
	close(pair[1]);
	if (err) {
		close(pair[0]);
		return err;
	}
	f->used[c.number] = true;
	*out = (struct sandbox){ .sock = pair[0], .server = f, .number = c.number };
	return 0;
}

void forkserver__end(struct forkserver *f, u32 number)
{
	const struct command c = { .number = number, .op = CHILD_END };

	message__send(f->sock, &c, sizeof(c), -1);
	f->used[number] = false;
}

void forkserver__lower(struct forkserver *f)
{
	const struct command c = { .op = LOWER };

	message__send(f->sock, &c, sizeof(c), -1);
}

void forkserver__free(struct forkserver *f)
{
	if (!f)
		return;
	close(f->sock);
	for (u32 ms = 0; ms < ENDING_MS && usage__wait(f->pid, NULL, WNOHANG) == 0; ms++)
		usleep(1000);
	free(f);
}
