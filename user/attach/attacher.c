// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The worker's side: start the attacher, ask it. */
#include "attach/attacher_wire.h"
#include "sandbox/usage.h"
#include "sandbox/message.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ATTACHER_MS	      20000 /* for an answer; the kernel puts probes in slowly on a busy machine */
#define ATTACHER_STOPPING_MS  800 /* once the end was asked for */
#define ATTACHER_DETACHING_MS 5000
#define OPENER_MS	      2000
#define OPENER_STOPPING_MS    200
#define OPENER_PATIENT	      3 /* openers given up, after which a file is waited for less long */
#define OPENER_IMPATIENT_MS   300
#define OPENER_FORGIVEN	      64 /* answers in a row, after which one opener that was given up counts no more */
#define BYTES_MAX	      (256u << 20) /* of one answer */
#define ENDED_US	      1000 /* how often is asked whether the attacher has ended */

struct attacher {
	int sock;
	pid_t pid;
	int opener; /* its socket, -1: none runs */
	u32 given_up; /* openers that did not answer */
	u32 answered; /* requests to openers since the last of these */
	bool stuck; /* the attacher does not answer: it is not asked any more */
	u64 seq; /* of the last request */
	const volatile sig_atomic_t *stop;
	void (*idle)(void *arg);
	void *idle_arg;
	const struct probes *probes;
	struct attacher_request request;
	struct attacher_reply reply;
	int refused;
};

int attacher__start(struct attacher **out, const struct probes *probes, const struct attacher_options *options)
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
	a->stop = options->stop;
	a->idle = options->idle;
	a->idle_arg = options->arg;
	a->opener = -1;
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

static struct attacher_request *request(struct attacher *a, enum attacher_op op, const struct program *p)
{
	memset(&a->request, 0, REQUEST_HEAD);
	a->request.op = op;
	a->request.program = p ? p - a->probes->programs : 0;
	return &a->request;
}

/* -ETIMEDOUT: no answer came within the time, which is shorter once the end was asked for. */
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
 * The next answer to the last request. Others are thrown away: the child that searches the disk shares the attacher's
 * socket, and may have ended before it took an answer.
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

/* Its result. fd_out, if asked for, takes its descriptor. */
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

/* What a request for a descriptor returns, of its result and the descriptor that came. */
static int fd_or_error(int err, int fd)
{
	if (!err)
		return fd < 0 ? -EPIPE : fd;
	if (fd >= 0)
		close(fd);
	return err;
}

/* Sends the request with len bytes of data and waits for the answer; fd_out, if asked for, takes its descriptor. */
static int call(struct attacher *a, size_t len, int fd, int *fd_out)
{
	bool detaches;
	int got, err;

	if (a->stuck)
		return -ETIMEDOUT;
	/* links are taken off many at a time, which has taken seconds on busy machines */
	detaches = a->request.op == OP_DETACH_SITES || a->request.op == OP_DROP;
	err = exchange(a, a->sock, len, fd, &got, ATTACHER_MS, detaches ? ATTACHER_DETACHING_MS : ATTACHER_STOPPING_MS);
	if (err) {
		a->stuck = err == -ETIMEDOUT;
		return err;
	}
	return use_answer(a, got, fd_out);
}

static int call_for_fd(struct attacher *a, size_t len, int beside)
{
	int fd = -1, err = call(a, len, beside, &fd);

	return fd_or_error(err, fd);
}

/* The opener does not answer: whatever it waits for, this process goes on without it. */
static void give_up_opener(struct attacher *a)
{
	close(a->opener);
	a->opener = -1;
	a->given_up++;
	a->answered = 0;
}

/* A recording runs for days: what did not answer at its beginning does not shorten the time of all files for ever. */
static void note_answer(struct attacher *a)
{
	if (!a->given_up || ++a->answered < OPENER_FORGIVEN)
		return;
	a->given_up--;
	a->answered = 0;
}

static int opener_limit(const struct attacher *a)
{
	return a->given_up < OPENER_PATIENT ? OPENER_MS : OPENER_IMPATIENT_MS;
}

/* The request to the opener, and its first answer; -EPIPE: it has ended. */
static int ask_once(struct attacher *a, size_t len, int fd, int *fd_out)
{
	int got, err;

	if (a->opener < 0) {
		/* the request is built already */
		u32 op = a->request.op;

		a->request.op = OP_OPENER;
		err = call_for_fd(a, 0, -1);
		a->request.op = op;
		if (err < 0)
			return err;
		a->opener = err;
	}
	err = exchange(a, a->opener, len, fd, &got, opener_limit(a), OPENER_STOPPING_MS);
	if (err) {
		give_up_opener(a);
		return err;
	}
	note_answer(a);
	return use_answer(a, got, fd_out);
}

/* One that has ended says nothing of what is asked for: something killed it, maybe long ago. */
static int ask_opener(struct attacher *a, size_t len, int fd, int *fd_out)
{
	int err = ask_once(a, len, fd, fd_out);

	if (err == -EPIPE)
		err = ask_once(a, len, fd, fd_out);
	return err == -EPIPE ? -ETIMEDOUT : err;
}

static int ask_opener_for_fd(struct attacher *a, size_t len, int beside)
{
	int fd = -1, err = ask_opener(a, len, beside, &fd);

	return fd_or_error(err, fd);
}

/* What is answered in parts, each within the time; a NUL follows it. */
static int ask_opener_for_bytes(struct attacher *a, int fd, char **out, size_t *len)
{
	int n = ask_opener(a, 0, fd, NULL), got;
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
		n = take_answer(a, a->opener, &got, opener_limit(a), OPENER_STOPPING_MS);
		if (n) {
			give_up_opener(a);
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
	/* parts are still to come, which nothing would take */
	give_up_opener(a);
	return -ENOMEM;
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
	return call_for_fd(a, 0, -1);
}

static int open_once(struct attacher *a, const struct mapping *m)
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
	r->magic = m->magic;
	return ask_opener_for_fd(a, len, -1);
}

int attacher__open(struct attacher *a, const struct mapping *m)
{
	const u32 none = 0;
	int err = open_once(a, m);

	/* any request has the attacher take the opener's notes, for which there was no room */
	if (err == -EAGAIN && !attacher__drop_all(a, &none, 0))
		err = open_once(a, m);
	return err;
}

int attacher__open_debug(struct attacher *a, u32 pid, const char *path, int object)
{
	struct attacher_request *r = request(a, OP_OPEN_DEBUG, NULL);
	size_t len = strlen(path) + 1;

	if (len > sizeof(r->data))
		return -ENAMETOOLONG;
	memcpy(r->data, path, len);
	r->pid = pid;
	r->n = len;
	return ask_opener_for_fd(a, len, object);
}

int attacher__maps(struct attacher *a, u32 pid, char **out, size_t *len)
{
	request(a, OP_MAPS, NULL)->pid = pid;
	return ask_opener_for_bytes(a, -1, out, len);
}

int attacher__processes(struct attacher *a, char **out, size_t *len)
{
	request(a, OP_PROCESSES, NULL);
	return ask_opener_for_bytes(a, -1, out, len);
}

int attacher__read(struct attacher *a, int fd, char **out, size_t *len)
{
	request(a, OP_READ, NULL);
	return ask_opener_for_bytes(a, fd, out, len);
}

int attacher__lacks(struct attacher *a, char *out, size_t len)
{
	int n;

	request(a, OP_LACKS, NULL);
	n = call(a, 0, -1, NULL);
	if (n >= 0)
		snprintf(out, len, "%.*s", n, a->reply.bytes);
	return n < 0 ? n : 0;
}

int attacher__user(struct attacher *a, u32 pid, u32 *uid)
{
	int err;

	request(a, OP_USER, NULL)->pid = pid;
	err = ask_opener(a, 0, -1, NULL);
	if (!err)
		*uid = a->reply.user;
	return err;
}

int attacher__image(struct attacher *a, u32 pid, struct process_image *out)
{
	int err;

	request(a, OP_IMAGE, NULL)->pid = pid;
	err = ask_opener(a, 0, -1, NULL);
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

void attacher__forked(struct attacher *a)
{
	a->seq |= 1ULL << 63;
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
	/* one that is stuck takes its probes off when the kernel lets it */
	while (usage__wait(a->pid, NULL, WNOHANG) == 0 && !a->stuck && message__now() - begin < ATTACHER_MS)
		usleep(ENDED_US);
	free(a);
}
