/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between attacher.c, which makes requests, and attacher_exchange.c, which sends them and receives the answers. */
#pragma once

#include "attach/attacher_wire.h"

#define ATTACHER_MS 20000 /* limit of an answer; on a busy machine the kernel inserts probes slowly */

struct attacher {
	int sock;
	pid_t pid;
	int opener; /* its socket; -1: none is running */
	int opener_ms; /* the time limit of a request to the opener */
	bool stuck; /* the attacher does not answer and gets no more requests */
	u64 seq; /* number of the last request */
	const volatile sig_atomic_t *stop;
	void (*idle)(void *arg);
	void *idle_arg;
	const struct probes *probes;
	struct attacher_request request;
	struct attacher_reply reply;
	int refused;
};

/* A request, to be completed and sent by one of the following. p NULL: of no program */
struct attacher_request *attacher__request(struct attacher *a, enum attacher_op op, const struct program *p);
/* Sends the request with len bytes of data and waits for the answer; *fd_out, if not NULL, gets its descriptor. */
int attacher__call(struct attacher *a, size_t len, int fd, int *fd_out);
/* The same for a descriptor, which it returns, or negative errno. */
int attacher__call_for_fd(struct attacher *a, size_t len, int beside);
/* The same of the opener, which is started if none is running */
int attacher__call_opener(struct attacher *a, size_t len, int fd, int *fd_out);
int attacher__call_opener_for_fd(struct attacher *a, size_t len, int beside);
/* An answer in parts, each within the time limit; a NUL is appended. */
int attacher__call_opener_for_bytes(struct attacher *a, size_t request_len, int fd, char **out, size_t *len);
