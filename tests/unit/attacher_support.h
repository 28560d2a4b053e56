/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An attacher in a child process, and requests to it and to its opener. */
#pragma once

#include "attach/attacher_wire.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODYS_PID 0x7ffffff0 /* higher than any pid */

static struct program programs[] = {
	{ .name = "off", .section.kind = SECTION_SPAN },
	{ .name = "span", .section.kind = SECTION_SPAN, .enabled = true },
	{ .name = "entry", .section.kind = SECTION_ENTRY, .enabled = true },
	{ .name = "tracepoint", .section.kind = SECTION_TRACEPOINT },
	{ .name = "clock", .section.kind = SECTION_CLOCK },
	{ .name = "site", .section.kind = SECTION_SITE, .enabled = true },
};
static const struct probes probes = { .programs = programs, .n_programs = 5 };

static struct attacher_request request;
static struct attacher_reply reply;
static int sock, opener; /* opener: -1 if none is requested */
static pid_t attacher;
static bool trusted_files;

static inline bool start(pid_t command)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return false;
	fflush(stdout);
	attacher = fork();
	if (!attacher) {
		close(pair[0]);
		attacher__serve(pair[1], &probes,
				&(struct attacher_options){ .command = command, .trusted_files = trusted_files });
	}
	close(pair[1]);
	sock = pair[0];
	opener = -1;
	return attacher > 0;
}

/* True if the attacher ended normally. */
static inline bool end(void)
{
	int status;

	if (opener >= 0)
		close(opener);
	close(sock);
	return waitpid(attacher, &status, 0) == attacher && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* The answer, or 1 without one. */
static inline int ask_at(int at, const void *data, size_t len, int fd, int *got)
{
	int other;

	if (message__send(at, data, len, fd) ||
	    message__receive(at, &reply, sizeof(reply), &other) < (ssize_t)REPLY_HEAD)
		return 1;
	if (got)
		*got = other;
	else if (other >= 0)
		close(other);
	return reply.result;
}

static inline int ask_raw(const void *data, size_t len, int fd, int *got)
{
	return ask_at(sock, data, len, fd, got);
}

/* The answer of the opener, which the attacher starts; the last one if there are several. */
static inline int ask_opener(size_t len, int fd, int *got)
{
	const struct attacher_request start = { .op = OP_OPENER };
	int result;

	if (opener < 0 && ask_raw(&start, REQUEST_HEAD, -1, &opener))
		return 1;
	result = ask_at(opener, &request, REQUEST_HEAD + len, fd, got);
	while (result > 0 && message__receive(opener, &reply, sizeof(reply), &fd) >= (ssize_t)REPLY_HEAD)
		result = reply.result;
	return result;
}

static inline int ask(enum attacher_op op, u32 program, size_t len)
{
	request.op = op;
	request.program = program;
	if (op >= OP_OPEN && op <= OP_PROCESSES)
		return ask_opener(len, -1, NULL);
	return ask_raw(&request, REQUEST_HEAD + len, -1, NULL);
}

static inline int ask_sites(u32 program, u32 method, u32 n, size_t len, int fd)
{
	request = (struct attacher_request){ .op = OP_SITES, .program = program, .method = method, .n = n };
	return ask_raw(&request, REQUEST_HEAD + len, fd, NULL);
}
