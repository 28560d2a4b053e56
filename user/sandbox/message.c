// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sandbox/message.h"
#include "util/timing.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define AWAIT_MS 10

static int send_message(int sock, const void *data, size_t len, int fd, int flags)
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
		n = sendmsg(sock, &msg, MSG_NOSIGNAL | flags);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return -EAGAIN;
	return n == (ssize_t)len ? 0 : -EPIPE;
}

int message__send(int sock, const void *data, size_t len, int fd)
{
	return send_message(sock, data, len, fd, 0);
}

int message__send_now(int sock, const void *data, size_t len, int fd)
{
	return send_message(sock, data, len, fd, MSG_DONTWAIT);
}

bool message__pending(int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
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
		/* room for one descriptor: with CMSG_SPACE, which includes padding, two would fit */
		.msg_controllen = CMSG_LEN(sizeof(int)),
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
	if (!(msg.msg_flags & MSG_TRUNC))
		return n;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return -EMSGSIZE;
}

u64 message__now(void)
{
	return timing__now() / 1000000;
}

int message__await(int sock, struct message_wait *w)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	u64 now = message__now();
	bool first = !w->begun;

	if (first)
		w->begun = now;
	for (;; first = false, now = message__now()) {
		s64 left = (w->stop && *w->stop ? w->stopping_ms : w->limit_ms) - (s64)(now - w->begun);

		if (left <= 0 && !first)
			return -ETIMEDOUT;
		/* also before the first poll: thousands of answers may each arrive at once */
		if (w->idle)
			w->idle(w->arg);
		/* waits in short intervals, because a signal may arrive just before poll() starts */
		if (poll(&p, 1, left < 0 ? 0 : left < AWAIT_MS ? (int)left : AWAIT_MS) > 0)
			return 0;
	}
}

void message__exclude(struct message_wait *w, u64 since)
{
	w->begun += message__now() - since;
}
