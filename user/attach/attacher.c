// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The worker's side: start the attacher, ask it. */
#include "attach/attacher_wire.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct attacher {
	int sock;
	pid_t pid;
	const struct probes *probes;
	struct attacher_request request;
	struct attacher_reply reply;
	int refused;
};

int message__send(int sock, const void *data, size_t len, int fd)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {};
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (fd >= 0) {
		msg.msg_control = control.room;
		msg.msg_controllen = sizeof(control.room);
		control.align = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof(int)),
		};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &fd, sizeof(int));
	}
	do {
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)len ? 0 : -EPIPE;
}

ssize_t message__receive(int sock, void *data, size_t size, int *fd)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = data, .iov_len = size };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	struct cmsghdr *c;
	ssize_t n;

	*fd = -1;
	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof(int));
	return n;
}

void attacher__withstand_signals(const char *name)
{
	/* SIGKILL can't be ignored: `timeout -s KILL` sends it to the whole group, `killall -9 sonde` to all of that name */
	setsid();
	prctl(PR_SET_NAME, name);
	/* what started sonde may send these to processes that it finds in other ways */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
}

int attacher__start(struct attacher **out, const struct probes *probes, const struct steering_maps *maps, pid_t command,
		    bool perf_events, bool trusted_files)
{
	struct attacher *a = calloc(1, sizeof(*a));
	int sock[2], err;

	if (!a)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock)) {
		err = -errno;
		free(a);
		return err;
	}
	a->probes = probes;
	a->refused = -1;
	a->pid = fork();
	if (a->pid < 0) {
		err = -errno;
		close(sock[0]);
		close(sock[1]);
		free(a);
		return err;
	}
	if (!a->pid) {
		close(sock[0]);
		attacher__serve(sock[1], probes, maps, command, perf_events, trusted_files);
	}
	close(sock[1]);
	a->sock = sock[0];
	*out = a;
	return 0;
}

static struct attacher_request *request(struct attacher *a, enum attacher_op op, const struct program *p)
{
	memset(&a->request, 0, REQUEST_HEAD);
	a->request.op = op;
	a->request.program = p ? p - a->probes->programs : 0;
	return &a->request;
}

/* Sends the request with len bytes of data and waits for the answer; fd_out, if asked for, takes its descriptor. */
static int call(struct attacher *a, size_t len, int fd, int *fd_out)
{
	int got;

	if (message__send(a->sock, &a->request, REQUEST_HEAD + len, fd) ||
	    message__receive(a->sock, &a->reply, sizeof(a->reply), &got) < (ssize_t)REPLY_HEAD)
		return -EPIPE;
	if (a->refused < 0)
		a->refused = a->reply.refused;
	if (fd_out)
		*fd_out = got;
	else if (got >= 0)
		close(got);
	return a->reply.result;
}

static int call_for_fd(struct attacher *a, size_t len)
{
	int fd = -1, err = call(a, len, -1, &fd);

	if (!err)
		return fd < 0 ? -EPIPE : fd;
	if (fd >= 0)
		close(fd);
	return err;
}

int attacher__sites(struct attacher *a, const struct program *p, enum attach_method method,
		    const struct link_sites *sites, u8 *verdicts)
{
	struct attacher_request *r = request(a, OP_SITES, p);
	size_t size = sites->n * sizeof(u64);
	int err;

	if (!sites->n)
		return 0;
	if (sites->n > ATTACHER_SITES_MAX)
		return -E2BIG;
	r->method = method;
	r->pid = sites->pid;
	r->returns = sites->returns;
	r->object = sites->object;
	r->n = sites->n;
	memcpy(r->data, sites->offsets, size);
	memcpy(r->data + size, sites->cookies, size);
	r->counters = sites->counters != NULL;
	if (sites->counters)
		memcpy(r->data + 2 * size, sites->counters, size);
	err = call(a, (2 + r->counters) * size, sites->fd, NULL);
	if (err == -EBADMSG && verdicts)
		memcpy(verdicts, a->reply.verdicts, sites->n);
	return err;
}

int attacher__detach_sites(struct attacher *a)
{
	request(a, OP_DETACH_SITES, NULL);
	return call(a, 0, -1, NULL);
}

int attacher__drop(struct attacher *a, u32 object)
{
	return attacher__drop_all(a, &object, 1);
}

int attacher__drop_all(struct attacher *a, const u32 *objects, u32 n)
{
	struct attacher_request *r = request(a, OP_DROP, NULL);

	if (n > ATTACHER_DROPS_MAX)
		return -EINVAL;
	r->n = n;
	memcpy(r->data, objects, n * sizeof(*objects));
	return call(a, n * sizeof(*objects), -1, NULL);
}

int attacher__attach(struct attacher *a, const struct program *p)
{
	request(a, OP_ATTACH, p);
	return call(a, 0, -1, NULL);
}

int attacher__clock(struct attacher *a, const struct program *p, u32 hz)
{
	request(a, OP_ATTACH, p)->n = hz;
	return call(a, 0, -1, NULL);
}

int attacher__detach(struct attacher *a, const struct program *p)
{
	request(a, OP_DETACH, p);
	return call(a, 0, -1, NULL);
}

int attacher__iter(struct attacher *a, const struct program *p, u32 pid)
{
	request(a, OP_ITER, p)->pid = pid;
	return call_for_fd(a, 0);
}

int attacher__open(struct attacher *a, const struct mapping *m)
{
	struct attacher_request *r = request(a, OP_OPEN, NULL);
	size_t len = m->path ? strlen(m->path) + 1 : 0;

	if (len > sizeof(r->data))
		len = 0;
	memcpy(r->data, m->path, len);
	r->pid = m->pid;
	r->n = len;
	r->start = m->start;
	r->end = m->end;
	r->dev = m->dev;
	r->ino = m->ino;
	return call_for_fd(a, len);
}

int attacher__open_path(struct attacher *a, u32 pid, const char *path)
{
	struct attacher_request *r = request(a, OP_OPEN_PATH, NULL);
	size_t len = strlen(path) + 1;

	if (len > sizeof(r->data))
		return -ENAMETOOLONG;
	memcpy(r->data, path, len);
	r->pid = pid;
	r->n = len;
	return call_for_fd(a, len);
}

int attacher__maps(struct attacher *a, u32 pid)
{
	request(a, OP_MAPS, NULL)->pid = pid;
	return call_for_fd(a, 0);
}

int attacher__image(struct attacher *a, u32 pid, struct process_image *out)
{
	int err;

	request(a, OP_IMAGE, NULL)->pid = pid;
	err = call(a, 0, -1, NULL);
	if (!err)
		*out = a->reply.image;
	return err;
}

int attacher__map_set(struct attacher *a, const char *map, const void *key, const void *value, u64 flags)
{
	struct attacher_request *r = request(a, value ? OP_MAP_SET : OP_MAP_DELETE, NULL);
	int number = steering__find(map);
	const struct steering *s = number < 0 ? NULL : steering__at(number);

	if (!s || s->key_size + s->value_size > sizeof(r->data))
		return -ENOENT;
	r->program = number;
	r->start = flags;
	memcpy(r->data, key, s->key_size);
	if (value)
		memcpy(r->data + s->key_size, value, s->value_size);
	return call(a, s->key_size + (value ? s->value_size : 0), -1, NULL);
}

int attacher__signal(struct attacher *a, pid_t pid, int sig)
{
	struct attacher_request *r = request(a, OP_SIGNAL, NULL);

	r->pid = pid;
	r->n = sig;
	return call(a, 0, -1, NULL);
}

int attacher__fd(const struct attacher *a)
{
	return a->sock;
}

bool attacher__gone(const struct attacher *a)
{
	struct pollfd p = { .fd = a->sock };

	return poll(&p, 1, 0) > 0;
}

int attacher__refused(const struct attacher *a)
{
	return a->refused;
}

void attacher__free(struct attacher *a)
{
	if (!a)
		return;
	close(a->sock);
	while (waitpid(a->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(a);
}
