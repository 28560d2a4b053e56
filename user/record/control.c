// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/control.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "record/parts.h"

#define REQUESTS_MAX 16 /* at one poll */

socklen_t control__address(struct sockaddr_un *a, u32 pid)
{
	int n;

	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (!pid)
		return sizeof(a->sun_family);
	n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "sonde-control/%u", pid);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

int control__socket(u32 pid)
{
	int sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, err;
	struct sockaddr_un a;
	socklen_t len = control__address(&a, pid);

	if (sock < 0)
		return -errno;
	if (!setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) && !bind(sock, (struct sockaddr *)&a, len))
		return sock;
	err = -errno;
	close(sock);
	return err;
}

int control__receive(int sock, void *data, size_t size, struct control_message *m)
{
	union {
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr aligned;
	} room;
	struct iovec part = { .iov_base = data, .iov_len = size };
	struct msghdr h = {
		.msg_name = &m->from,
		.msg_namelen = sizeof(m->from),
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &room,
		.msg_controllen = sizeof(room),
	};
	ssize_t n = recvmsg(sock, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&h);

	if (n < 0)
		return -errno;
	m->from_len = h.msg_namelen;
	/* with descriptors, which nothing requests, there is no room for them */
	if ((size_t)n != size || h.msg_flags & MSG_TRUNC || !c || c->cmsg_level != SOL_SOCKET ||
	    c->cmsg_type != SCM_CREDENTIALS)
		return -EBADMSG;
	memcpy(&m->sender, CMSG_DATA(c), sizeof(m->sender));
	return 0;
}

void control__open(struct session *s)
{
	struct epoll_event ev = { .events = EPOLLIN };

	s->control.user = getuid();
	s->control.sock = control__socket((u32)getpid());
	if (s->control.sock >= 0 && epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->control.sock, &ev))
		control__close(&s->control);
}

void control__close(struct control *c)
{
	if (c->sock >= 0)
		close(c->sock);
	c->sock = -1;
}

static int refuse(struct control_answer *a, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static int refuse(struct control_answer *a, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(a->text, sizeof(a->text), fmt, args);
	va_end(args);
	return err;
}

static int set_paused(struct session *s, bool paused, struct control_answer *a)
{
	if (s->args->schedule || s->args->capture)
		return refuse(a, -EBUSY, "%s decides when this recording is paused",
			      s->args->schedule ? "--schedule" : "--capture-range");
	session__set_paused(s, paused);
	return 0;
}

static int mark(struct session *s, const char *text)
{
	struct meta_mark e = { .event = session__event(s, ID_meta_mark), .text = session__intern(s, text) };

	return session__emit(s, &e, sizeof(e));
}

/* +FAMILY or -FAMILY */
static int toggle(struct session *s, const char *item, struct control_answer *a)
{
	const struct schema_family *f = *item ? schema__family(s->embedded.schema, item + 1) : NULL;
	const struct family_host *h = f ? hosts__of(s, f->id) : NULL;
	int err;

	if ((*item != '+' && *item != '-') || !f)
		return refuse(a, -EINVAL, "'%.64s' is not +FAMILY or -FAMILY", item);
	if (!load__has_family(s, f->id))
		return refuse(a, -ENOTSUP,
			      "family %s was not loaded when the recording began, and now sonde has no right to do so: "
			      "name it with -t, and switch it off after the start",
			      f->name);
	if (!h || !h->toggles || (s->args->schedule && h->set_suspended))
		return refuse(a, -ENOTSUP, "family %s can't be switched off and on in a recording: %s", f->name,
			      h && h->toggles ? "--schedule does it" : "cuda, cudadrv, nccl and torch can");
	if (load__has_separate_returns(s) && strcmp(f->name, "torch"))
		return refuse(a, -ENOTSUP,
			      "family %s can't be switched off and on here: this kernel has no session links (6.13)",
			      f->name);
	err = site_links__toggle(s, f, *item == '+');
	return err ? refuse(a, err, "family %s: %s", f->name, strerror(-err)) : 0;
}

static int toggle_all(struct session *s, char *list, struct control_answer *a)
{
	char *save, *item = strtok_r(list, ",", &save);
	int err = 0;

	for (; item && !err; item = strtok_r(NULL, ",", &save))
		err = toggle(s, item, a);
	return err;
}

static int serve(struct session *s, struct control_request *r, const struct ucred *sender, struct control_answer *a)
{
	r->text[sizeof(r->text) - 1] = '\0';
	if (sender->uid && sender->uid != s->control.user)
		return refuse(a, -EPERM, "only root and the user who started it may control a recording");
	if (r->version != CONTROL_VERSION)
		return refuse(a, -EPROTO, "the recording is made by another version of sonde");
	switch (r->what) {
	case CONTROL_PAUSE:
	case CONTROL_RESUME:
		return set_paused(s, r->what == CONTROL_PAUSE, a);
	case CONTROL_MARK:
		return mark(s, r->text);
	case CONTROL_TRACE:
		return toggle_all(s, r->text, a);
	default:
		return refuse(a, -ENOTSUP, "the recording does not know this request");
	}
}

void control__poll(struct session *s)
{
	for (u32 i = 0; s->control.sock >= 0 && i < REQUESTS_MAX; i++) {
		struct control_answer a = { .version = CONTROL_VERSION };
		struct control_request r;
		struct control_message m;
		int err = control__receive(s->control.sock, &r, sizeof(r), &m);
		struct iovec part = { .iov_base = &a, .iov_len = sizeof(a) };
		struct msghdr h = { .msg_name = &m.from, .msg_namelen = m.from_len, .msg_iov = &part, .msg_iovlen = 1 };

		if (err == -EAGAIN)
			return;
		if (err)
			continue;
		a.error = serve(s, &r, &m.sender, &a);
		/* a client that has gone needs no answer */
		sendmsg(s->control.sock, &h, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}
