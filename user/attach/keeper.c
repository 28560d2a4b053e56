// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct keeper {
	int sock;
	pid_t pid;
};

/* One attachment asked for; offsets and cookies follow, the file's descriptor comes beside it. */
struct request {
	const struct bpf_program *prog; /* the child is a copy of this process: the pointer holds there too */
	enum attach_method method;
	s32 pid;
	u32 n;
	u32 object;
	bool returns;
	bool drop; /* detach the object's instead */
};

/* All of it, or -EPIPE. */
static int write_all(int fd, const void *data, size_t len)
{
	while (len) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EPIPE;
		data = (const char *)data + n;
		len -= n;
	}
	return 0;
}

static int read_all(int fd, void *data, size_t len)
{
	while (len) {
		ssize_t n = recv(fd, data, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EPIPE;
		data = (char *)data + n;
		len -= n;
	}
	return 0;
}

static int send_request(int sock, const struct request *r, int file)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = (void *)r, .iov_len = sizeof(*r) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	ssize_t n;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &file, sizeof(int));
	do {
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n == sizeof(*r) ? 0 : -EPIPE;
}

/* 0, or -EPIPE: nothing more is asked for. */
static int receive_request(int sock, struct request *r, int *file)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { .iov_base = r, .iov_len = sizeof(*r) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	ssize_t n;

	*file = -1;
	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | MSG_WAITALL);
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(*r))
		return -EPIPE;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(file, CMSG_DATA(c), sizeof(int));
	return 0;
}

static int serve_one(int sock, struct links *links, const struct request *r, int file)
{
	u64 *offsets = calloc(r->n + 1, sizeof(u64)), *cookies = calloc(r->n + 1, sizeof(u64));
	struct link_sites sites = {
		.fd = file,
		.offsets = offsets,
		.cookies = cookies,
		.n = r->n,
		.returns = r->returns,
		.pid = r->pid,
		.object = r->object,
	};
	s32 err = offsets && cookies ? 0 : -ENOMEM;

	if (!err)
		err = read_all(sock, offsets, r->n * sizeof(u64));
	if (!err)
		err = read_all(sock, cookies, r->n * sizeof(u64));
	if (r->drop)
		links__drop(links, r->object);
	else if (!err)
		err = links__attach(links, r->prog, r->method, &sites);
	free(offsets);
	free(cookies);
	return write_all(sock, &err, sizeof(err));
}

void keeper__ignore_signals(void)
{
	/* Ctrl-C goes to the whole foreground group */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
}

static void run(int sock)
{
	struct links *links = links__new();
	struct request r;
	int file;

	/* the end of the socket is what ends this process */
	keeper__ignore_signals();
	prctl(PR_SET_NAME, "sonde-keeper");
	while (links && !receive_request(sock, &r, &file)) {
		int err = serve_one(sock, links, &r, file);

		if (file >= 0)
			close(file);
		if (err)
			break;
	}
	links__free(links);
	_exit(0);
}

int keeper__start(struct keeper **out)
{
	struct keeper *k = calloc(1, sizeof(*k));
	int sock[2], err;

	if (!k)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock)) {
		err = -errno;
		free(k);
		return err;
	}
	k->pid = fork();
	if (k->pid < 0) {
		err = -errno;
		close(sock[0]);
		close(sock[1]);
		free(k);
		return err;
	}
	if (!k->pid) {
		close(sock[0]);
		run(sock[1]);
	}
	close(sock[1]);
	k->sock = sock[0];
	*out = k;
	return 0;
}

int keeper__attach(struct keeper *k, const struct bpf_program *prog, enum attach_method method,
		   const struct link_sites *sites)
{
	struct request r = {
		.prog = prog,
		.method = method,
		.pid = sites->pid,
		.n = sites->n,
		.object = sites->object,
		.returns = sites->returns,
	};
	s32 result;
	int err;

	if (!sites->n)
		return 0;
	err = send_request(k->sock, &r, sites->fd);
	if (!err)
		err = write_all(k->sock, sites->offsets, sites->n * sizeof(u64));
	if (!err)
		err = write_all(k->sock, sites->cookies, sites->n * sizeof(u64));
	if (!err)
		err = read_all(k->sock, &result, sizeof(result));
	return err ? err : result;
}

int keeper__drop(struct keeper *k, u32 object)
{
	struct request r = { .object = object, .drop = true };
	s32 result;
	/* any descriptor: the request has one beside it */
	int err = send_request(k->sock, &r, k->sock);

	if (!err)
		err = read_all(k->sock, &result, sizeof(result));
	return err ? err : result;
}

void keeper__detach(struct keeper *k)
{
	shutdown(k->sock, SHUT_WR);
}

int keeper__fd(const struct keeper *k)
{
	return k->sock;
}

void keeper__free(struct keeper *k)
{
	if (!k)
		return;
	close(k->sock);
	while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(k);
}
