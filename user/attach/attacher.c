// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The worker's side: starts the attacher and makes requests of it. */
#include "attach/attacher_private.h"
#include "sandbox/usage.h"
#include "sandbox/message.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENDED_US 1000 /* us between two checks for the end of the attacher */

int attacher__start(struct attacher **out, const struct probes *probes, const struct attacher_options *options)
{
	struct attacher *a = calloc(1, sizeof(*a));
	int sock[2], err;

	*out = NULL;
	if (!a)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock)) {
		err = -errno;
		free(a);
		return err;
	}
	a->probes = probes;
	a->refused = -1;
	a->stop = options->stop;
	a->idle = options->idle;
	a->idle_arg = options->arg;
	a->opener = -1;
	a->opener_ms = OPENER_MS;
	a->pid = usage__fork();
	if (a->pid < 0) {
		err = -errno;
		close(sock[0]);
		close(sock[1]);
		free(a);
		return err;
	}
	if (!a->pid) {
		close(sock[0]);
		attacher__serve(sock[1], probes, options);
	}
	close(sock[1]);
	a->sock = sock[0];
	*out = a;
	return 0;
}

int attacher__sites(struct attacher *a, const struct program *p, enum attach_method method,
		    const struct link_sites *sites, u8 *verdicts)
{
	struct attacher_request *r = attacher__request(a, OP_SITES, p);
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
	err = attacher__call(a, (2 + r->counters) * size, sites->fd, NULL);
	if (err == -EBADMSG && verdicts)
		memcpy(verdicts, a->reply.verdicts, sites->n);
	return err;
}

int attacher__detach_sites(struct attacher *a)
{
	attacher__request(a, OP_DETACH_SITES, NULL);
	return attacher__call(a, 0, -1, NULL);
}

int attacher__drop(struct attacher *a, u32 object)
{
	return attacher__drop_all(a, &object, 1);
}

int attacher__drop_all(struct attacher *a, const u32 *objects, u32 n)
{
	struct attacher_request *r = attacher__request(a, OP_DROP, NULL);

	if (n > ATTACHER_DROPS_MAX)
		return -EINVAL;
	r->n = n;
	memcpy(r->data, objects, n * sizeof(*objects));
	return attacher__call(a, n * sizeof(*objects), -1, NULL);
}

int attacher__attach(struct attacher *a, const struct program *p)
{
	attacher__request(a, OP_ATTACH, p);
	return attacher__call(a, 0, -1, NULL);
}

int attacher__clock(struct attacher *a, const struct program *p, u32 hz)
{
	attacher__request(a, OP_ATTACH, p)->n = hz;
	return attacher__call(a, 0, -1, NULL);
}

int attacher__detach(struct attacher *a, const struct program *p)
{
	attacher__request(a, OP_DETACH, p);
	return attacher__call(a, 0, -1, NULL);
}

int attacher__iter(struct attacher *a, const struct program *p, u32 pid)
{
	attacher__request(a, OP_ITER, p)->pid = pid;
	return attacher__call_for_fd(a, 0, -1);
}

int attacher__tasks(struct attacher *a, u32 pid)
{
	attacher__request(a, OP_TASKS, NULL)->pid = pid;
	return attacher__call_for_fd(a, 0, -1);
}

static int open_once(struct attacher *a, const struct mapping *m)
{
	struct attacher_request *r = attacher__request(a, OP_OPEN, NULL);
	size_t len = m->path ? strlen(m->path) + 1 : 0;

	if (len > sizeof(r->data))
		len = 0;
	if (len)
		memcpy(r->data, m->path, len);
	r->pid = m->pid;
	r->n = len;
	r->start = m->start;
	r->end = m->end;
	r->dev = m->dev;
	r->ino = m->ino;
	return attacher__call_opener_for_fd(a, len, -1);
}

int attacher__open(struct attacher *a, const struct mapping *m)
{
	const u32 none = 0;
	int err = open_once(a, m);

	/*
	 * The pipe by which the opener reports files to the attacher is full. The attacher empties it at any request,
	 * so it gets one that does nothing.
	 */
	if (err == -EAGAIN && !attacher__drop_all(a, &none, 0))
		err = open_once(a, m);
	return err;
}

/* Prepares a request about a path in a process's root; returns the length of its data, or -ENAMETOOLONG. */
static ssize_t request_path(struct attacher *a, enum attacher_op op, u32 pid, const char *path)
{
	struct attacher_request *r = attacher__request(a, op, NULL);
	size_t len = strlen(path) + 1;

	if (len > sizeof(r->data))
		return -ENAMETOOLONG;
	memcpy(r->data, path, len);
	r->pid = pid;
	r->n = len;
	return (ssize_t)len;
}

int attacher__open_debug(struct attacher *a, u32 pid, const char *path, int object)
{
	ssize_t len = request_path(a, OP_OPEN_DEBUG, pid, path);

	return len < 0 ? (int)len : attacher__call_opener_for_fd(a, len, object);
}

int attacher__source(struct attacher *a, u32 pid, const char *path, u64 built, char **out, size_t *len)
{
	ssize_t request_len = request_path(a, OP_SOURCE, pid, path);

	a->request.built = built;
	return request_len < 0 ? (int)request_len : attacher__call_opener_for_bytes(a, request_len, -1, out, len);
}

int attacher__open_perf_map(struct attacher *a, u32 pid, u32 account)
{
	struct attacher_request *r = attacher__request(a, OP_OPEN_PERF_MAP, NULL);

	r->pid = pid;
	r->account = account;
	return attacher__call_opener_for_fd(a, 0, -1);
}

int attacher__maps(struct attacher *a, u32 pid, char **out, size_t *len)
{
	attacher__request(a, OP_MAPS, NULL)->pid = pid;
	return attacher__call_opener_for_bytes(a, 0, -1, out, len);
}

int attacher__processes(struct attacher *a, char **out, size_t *len)
{
	attacher__request(a, OP_PROCESSES, NULL);
	return attacher__call_opener_for_bytes(a, 0, -1, out, len);
}

int attacher__read(struct attacher *a, int fd, char **out, size_t *len)
{
	attacher__request(a, OP_READ, NULL);
	return attacher__call_opener_for_bytes(a, 0, fd, out, len);
}

int attacher__lacks(struct attacher *a, char *out, size_t len)
{
	int n;

	attacher__request(a, OP_LACKS, NULL);
	n = attacher__call(a, 0, -1, NULL);
	if (n >= 0)
		snprintf(out, len, "%.*s", n, a->reply.bytes);
	return n < 0 ? n : 0;
}

int attacher__user(struct attacher *a, u32 pid, u32 *uid)
{
	int err;

	attacher__request(a, OP_USER, NULL)->pid = pid;
	err = attacher__call_opener(a, 0, -1, NULL);
	if (!err)
		*uid = a->reply.user;
	return err;
}

int attacher__image(struct attacher *a, u32 pid, struct process_image *out)
{
	int err;

	attacher__request(a, OP_IMAGE, NULL)->pid = pid;
	err = attacher__call_opener(a, 0, -1, NULL);
	if (!err)
		*out = a->reply.image;
	return err;
}

int attacher__map_set(struct attacher *a, const char *map, const void *key, const void *value, u64 flags)
{
	struct attacher_request *r = attacher__request(a, value ? OP_MAP_SET : OP_MAP_DELETE, NULL);
	int number = steering__find(map);
	const struct steering *s = number < 0 ? NULL : steering__at(number);

	if (!s || s->key_size + s->value_size > sizeof(r->data))
		return -ENOENT;
	r->program = number;
	r->start = flags;
	memcpy(r->data, key, s->key_size);
	if (value)
		memcpy(r->data + s->key_size, value, s->value_size);
	return attacher__call(a, s->key_size + (value ? s->value_size : 0), -1, NULL);
}

int attacher__signal(struct attacher *a, pid_t pid, int sig)
{
	struct attacher_request *r = attacher__request(a, OP_SIGNAL, NULL);

	r->pid = pid;
	r->n = sig;
	return attacher__call(a, 0, -1, NULL);
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

bool attacher__stuck(const struct attacher *a)
{
	return a->stuck;
}

void attacher__free(struct attacher *a)
{
	u64 begin = message__now();

	if (!a)
		return;
	if (a->opener >= 0)
		close(a->opener);
	close(a->sock);
	/* an attacher that is stuck detaches its probes when the kernel lets it continue */
	while (usage__wait(a->pid, NULL, WNOHANG) == 0 && !a->stuck && message__now() - begin < ATTACHER_MS)
		usleep(ENDED_US);
	free(a);
}
