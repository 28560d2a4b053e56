// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads DWARF in a child process (sandbox/sandbox.h). */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "elf/dwarf.h"
#include "sandbox/message.h"

struct answer {
	int err;
	u64 offsets[DWARF_MEMBERS];
};

void dwarf_job__answer(int sock, const struct dwarf_request *q, int fd)
{
	struct dwarf_member m[DWARF_MEMBERS] = {};
	struct answer a = { .err = -E2BIG };

	if (q->n <= DWARF_MEMBERS) {
		for (u32 i = 0; i < q->n; i++)
			m[i] = (struct dwarf_member){ .name = q->members[i].name, .size = q->members[i].size };
		a.err = dwarf__members(fd, q->type, m, q->n);
		for (u32 i = 0; i < q->n; i++)
			a.offsets[i] = m[i].offset;
	}
	message__send(sock, &a, sizeof(a), -1);
}

/* The main function of a child that does nothing else. */
static void serve(int sock, void *arg)
{
	struct dwarf_request q;
	int fd;

	if (message__receive(sock, &q, sizeof(q), &fd) == sizeof(q) && fd >= 0)
		dwarf_job__answer(sock, &q, fd);
}

static int fill(struct dwarf_request *q, const char *type, const struct dwarf_member *members, u32 n)
{
	if (n > DWARF_MEMBERS || strlen(type) >= sizeof(q->type))
		return -E2BIG;
	*q = (struct dwarf_request){ .kind = DWARF_REQUEST, .n = n };
	strcpy(q->type, type);
	for (u32 i = 0; i < n; i++) {
		if (strlen(members[i].name) >= sizeof(q->members[i].name))
			return -E2BIG;
		strcpy(q->members[i].name, members[i].name);
		q->members[i].size = members[i].size;
	}
	return 0;
}

int dwarf_job__start(struct dwarf_job *job, struct forkserver *server, int fd, const char *type,
		     const struct dwarf_member *members, u32 n)
{
	struct dwarf_request q;
	int err = fill(&q, type, members, n);

	if (!err)
		err = server ? forkserver__fork(server, &job->child) : sandbox__fork(&job->child, serve, NULL);
	if (err)
		return err;
	err = message__send_now(job->child.sock, &q, sizeof(q), fd);
	if (err)
		sandbox__end(&job->child);
	job->running = !err;
	return err;
}

int dwarf_job__poll(struct dwarf_job *job, int timeout_ms, struct dwarf_member *members, u32 n)
{
	struct message_wait wait = { .limit_ms = timeout_ms };
	struct answer a;
	ssize_t got;
	int fd;

	if (message__await(job->child.sock, &wait))
		return -EAGAIN;
	got = message__receive(job->child.sock, &a, sizeof(a), &fd);
	if (fd >= 0)
		close(fd);
	/* it has answered, or its socket was closed because it has ended */
	sandbox__end(&job->child);
	job->running = false;
	if (got != sizeof(a))
		return -EFAULT;
	for (u32 i = 0; i < n && i < DWARF_MEMBERS; i++)
		members[i].offset = a.offsets[i];
	return a.err > 0 ? -EPROTO : a.err;
}

void dwarf_job__cancel(struct dwarf_job *job)
{
	sandbox__end(&job->child);
	job->running = false;
}
