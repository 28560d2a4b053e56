// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sends requests to the attacher and its opener, and receives their answers within time limits. */
#include "attach/attacher_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/message.h"

#define ATTACHER_STOPPING_MS 800 /* replaces ATTACHER_MS once the user has asked to stop */
#define ATTACHER_LONG_MS     5000 /* replaces it for requests that take long */
#define OPENER_STOPPING_MS   200
#define BYTES_MAX	     (256u << 20) /* of one answer */

struct attacher_request *attacher__request(struct attacher *a, enum attacher_op op, const struct program *p)
{
	memset(&a->request, 0, REQUEST_HEAD);
	a->request.op = op;
	a->request.program = p ? p - a->probes->programs : 0;
	return &a->request;
}

/* Waits for a message. -ETIMEDOUT: none came within the limit, which is shorter once the user has asked to stop. */
static int await(const struct attacher *a, int sock, int limit_ms, int stopping_ms)
{
	struct message_wait wait = {
		.limit_ms = limit_ms,
		.stopping_ms = stopping_ms,
		.stop = a->stop,
		.idle = a->idle,
		.arg = a->idle_arg,
	};

	return message__await(sock, &wait);
}

/*
 * Receives the answer to the last request. Other answers are discarded: the child that searches the disk shares the
 * attacher's socket, and may have ended before it received an answer.
 */
static int take_answer(struct attacher *a, int sock, int *got, int limit_ms, int stopping_ms)
{
	int err;

	for (;;) {
		err = await(a, sock, limit_ms, stopping_ms);
		if (err)
			return err;
		if (message__receive(sock, &a->reply, sizeof(a->reply), got) < (ssize_t)REPLY_HEAD)
			return -EPIPE;
		if (a->reply.seq == a->seq)
			return 0;
		if (*got >= 0)
			close(*got);
	}
}

static int exchange(struct attacher *a, int sock, size_t len, int fd, int *got, int limit_ms, int stopping_ms)
{
	*got = -1;
	a->request.seq = ++a->seq;
	if (message__send(sock, &a->request, REQUEST_HEAD + len, fd))
		return -EPIPE;
	return take_answer(a, sock, got, limit_ms, stopping_ms);
}

/* Returns the result of an answer. *fd_out, if not NULL, gets its descriptor. */
static int use_answer(struct attacher *a, int got, int *fd_out)
{
	if (a->refused < 0)
		a->refused = a->reply.refused;
	if (fd_out)
		*fd_out = got;
	else if (got >= 0)
		close(got);
	return a->reply.result;
}

/* The return value of a request for a descriptor, from the result and the received descriptor. */
static int fd_or_error(int err, int fd)
{
	if (!err)
		return fd < 0 ? -EPIPE : fd;
	if (fd >= 0)
		close(fd);
	return err;
}

int attacher__call(struct attacher *a, size_t len, int fd, int *fd_out)
{
	bool is_long;
	int got, err;

	if (a->stuck)
		return -ETIMEDOUT;
	/* these close links in large groups, which has taken seconds on busy machines */
	is_long = a->request.op == OP_DETACH_SITES || a->request.op == OP_DROP;
	err = exchange(a, a->sock, len, fd, &got, ATTACHER_MS, is_long ? ATTACHER_LONG_MS : ATTACHER_STOPPING_MS);
	if (err) {
		a->stuck = err == -ETIMEDOUT;
		return err;
	}
	return use_answer(a, got, fd_out);
}

int attacher__call_for_fd(struct attacher *a, size_t len, int beside)
{
	int fd = -1, err = attacher__call(a, len, beside, &fd);

	return fd_or_error(err, fd);
}

/* The opener does not answer: this process continues without it. */
static void abandon_opener(struct attacher *a)
{
	close(a->opener);
	a->opener = -1;
}

void attacher__limit(struct attacher *a, int ms)
{
	a->opener_ms = ms;
}

/* Sends the request to the opener and receives its first answer; -EPIPE: the opener has ended. */
static int call_opener_once(struct attacher *a, size_t len, int fd, int *fd_out)
{
	int got, err;

	if (a->opener < 0) {
		/* the request has been built already */
		u32 op = a->request.op;

		a->request.op = OP_OPENER;
		err = attacher__call_for_fd(a, 0, -1);
		a->request.op = op;
		if (err < 0)
			return err;
		a->opener = err;
	}
	err = exchange(a, a->opener, len, fd, &got, a->opener_ms, OPENER_STOPPING_MS);
	if (err) {
		abandon_opener(a);
		return err;
	}
	return use_answer(a, got, fd_out);
}

/*
 * If the opener has ended, the request is sent to a new one: the end says nothing about the request, as something may
 * have killed the opener long ago.
 */
int attacher__call_opener(struct attacher *a, size_t len, int fd, int *fd_out)
{
	int err = call_opener_once(a, len, fd, fd_out);

	if (err == -EPIPE)
		err = call_opener_once(a, len, fd, fd_out);
	return err == -EPIPE ? -ETIMEDOUT : err;
}

int attacher__call_opener_for_fd(struct attacher *a, size_t len, int beside)
{
	int fd = -1, err = attacher__call_opener(a, len, beside, &fd);

	return fd_or_error(err, fd);
}

int attacher__call_opener_for_bytes(struct attacher *a, size_t request_len, int fd, char **out, size_t *len)
{
	int n = attacher__call_opener(a, request_len, fd, NULL), got;
	size_t size = 0, used = 0;
	char *buf = NULL, *bigger;

	for (;;) {
		if (n >= 0 && size - used < (size_t)n + 1) {
			size = size * 2 + sizeof(a->reply.bytes) + 1;
			bigger = size > BYTES_MAX ? NULL : realloc(buf, size);
			if (!bigger)
				break;
			buf = bigger;
		}
		if (n <= 0 || n > (int)sizeof(a->reply.bytes))
			break;
		memcpy(buf + used, a->reply.bytes, n);
		used += n;
		n = take_answer(a, a->opener, &got, a->opener_ms, OPENER_STOPPING_MS);
		if (n) {
			abandon_opener(a);
			n = -ETIMEDOUT;
			break;
		}
		n = a->reply.result;
	}
	if (!n && buf) {
		buf[used] = '\0';
		*out = buf;
		*len = used;
		return 0;
	}
	free(buf);
	if (n < 0)
		return n;
	/* more parts would arrive, which no request expects */
	abandon_opener(a);
	return -ENOMEM;
}
