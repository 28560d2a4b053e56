// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sandbox/bounded.h"

#include "sandbox/message.h"
#include "sandbox/usage.h"
#include "util/account.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define USERS_MAX 256
#define LIMIT_MS  2000
#define LEAST_MS  100
#define OTHERS_MS 12000
#define END_MS	  50 /* a child that does not wait ends at once when it is killed */
#define BYTES_MAX (16 << 20)
#define PART	  65536 /* bytes in one message */

struct request {
	bounded_fn *fn; /* the child is a copy of this process, so that addresses are the same */
	size_t size;
	char arg[PATH_MAX + 512];
};

struct answer {
	int result;
	size_t n;
};

static struct {
	pid_t parent; /* the process that forked the child: a copy of it needs a child of its own */
	pid_t pid; /* 0: none */
	int sock;
} child;

struct limits {
	struct user {
		uid_t uid;
		u32 abandoned; /* number of children */
	} users[USERS_MAX];
	u32 n_users;
	u32 others_ms; /* time that children took which processes of users other than root made wait */
};

static struct limits own, *limits = &own;

bool bounded__add(struct bounded_reply *reply, const void *bytes, size_t n)
{
	char *more = n > BYTES_MAX - reply->n ? NULL : realloc(reply->bytes, reply->n + n);

	if (!more)
		return false;
	memcpy(more + reply->n, bytes, n);
	reply->bytes = more;
	reply->n += n;
	return true;
}

static bool send_reply(int sock, int result, const struct bounded_reply *r)
{
	struct answer a = { .result = result, .n = r->n };
	bool sent = !message__send(sock, &a, sizeof(a), r->fd);

	for (size_t at = 0; sent && at < r->n; at += PART)
		sent = !message__send(sock, r->bytes + at, r->n - at < PART ? r->n - at : PART, -1);
	return sent;
}

/* A child that waits keeps nothing else open: not the output, whose reader would wait for its end. */
static void serve(int sock)
{
	static struct request q;
	int passed;

	usage__forget();
	prctl(PR_SET_NAME, "sonde-helper");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(sock, STDIN_FILENO) < 0 || close_range(STDIN_FILENO + 1, ~0u, 0))
		_exit(1);
	while (message__receive(STDIN_FILENO, &q, sizeof(q), &passed) == sizeof(q)) {
		struct bounded_reply r = { .fd = -1 };
		int result = q.fn(q.arg, &r);

		if (!send_reply(STDIN_FILENO, result, &r))
			break;
		if (r.fd >= 0)
			close(r.fd);
		free(r.bytes);
	}
	_exit(0);
}

void bounded__forget(void)
{
	bool mine = child.parent == getpid();

	if (!child.pid)
		return;
	close(child.sock);
	if (mine)
		kill(child.pid, SIGKILL);
	for (u32 ms = 0; mine && ms < END_MS && !waitpid(child.pid, NULL, WNOHANG); ms++)
		usleep(1000);
	child.pid = 0;
}

static int start(void)
{
	int pair[2];
	pid_t pid;

	if (child.pid && child.parent == getpid())
		return 0;
	bounded__forget();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pid = usage__fork();
	if (!pid)
		serve(pair[1]);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return -EAGAIN;
	}
	child.parent = getpid();
	child.pid = pid;
	child.sock = pair[0];
	return 0;
}

static struct user *user_of(u32 pid)
{
	uid_t uid = 0;

	if (pid && !account__of(pid, &uid))
		uid = 0;
	for (u32 i = 0; i < limits->n_users && i < USERS_MAX; i++)
		if (limits->users[i].uid == uid)
			return &limits->users[i];
	/* the last entry is of all users beyond the limit together */
	if (limits->n_users >= USERS_MAX)
		return &limits->users[USERS_MAX - 1];
	limits->users[limits->n_users].uid = uid;
	return &limits->users[limits->n_users++];
}

void bounded__share(void)
{
	struct limits *shared;

	if (limits != &own)
		return;
	/* cppcheck-suppress invalidFunctionArg */
	shared = mmap(NULL, sizeof(own), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return;
	*shared = own;
	limits = shared;
}

static int limit_of(const struct user *u)
{
	int ms = LIMIT_MS >> (u->abandoned < 16 ? u->abandoned : 16);

	if (u->uid && limits->others_ms >= OTHERS_MS)
		return 0;
	return ms >= LEAST_MS ? ms : u->uid ? 0 : LEAST_MS;
}

static int receive(struct message_wait *wait, void *data, size_t size, int *fd)
{
	ssize_t n = message__await(child.sock, wait);

	if (!n)
		n = message__receive(child.sock, data, size, fd);
	return n < 0 ? (int)n : n == (ssize_t)size ? 0 : -EPROTO;
}

static int ask(int limit_ms, const struct request *q, struct bounded_reply *reply)
{
	struct message_wait wait = { .limit_ms = limit_ms };
	struct answer a = {};
	int err = start(), none;

	if (!err)
		err = message__send(child.sock, q, sizeof(*q), -1);
	if (!err)
		err = receive(&wait, &a, sizeof(a), &reply->fd);
	if (!err && a.n && !(reply->bytes = malloc(a.n)))
		err = -ENOMEM;
	for (; !err && reply->n < a.n; reply->n += a.n - reply->n < PART ? a.n - reply->n : PART)
		err = receive(&wait, reply->bytes + reply->n, a.n - reply->n < PART ? a.n - reply->n : PART, &none);
	return err ? err : a.result;
}

int bounded__call(u32 pid, bounded_fn *fn, const void *arg, size_t size, struct bounded_reply *reply)
{
	struct request q = { .fn = fn, .size = size };
	struct user *u = user_of(pid);
	int limit_ms = limit_of(u), result;

	*reply = (struct bounded_reply){ .fd = -1 };
	if (size > sizeof(q.arg))
		return -ENAMETOOLONG;
	if (!limit_ms)
		return -ETIMEDOUT;
	memcpy(q.arg, arg, size);
	result = ask(limit_ms, &q, reply);
	if (result != -ETIMEDOUT)
		return result;
	bounded__forget();
	if (reply->fd >= 0)
		close(reply->fd);
	free(reply->bytes);
	*reply = (struct bounded_reply){ .fd = -1 };
	u->abandoned++;
	limits->others_ms += u->uid ? (u32)limit_ms : 0;
	return -ETIMEDOUT;
}
