/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages between the processes of sonde, over SOCK_SEQPACKET sockets. */
#pragma once

#include "core/types.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Sends or receives one message with at most one descriptor (-1: none). Receiving returns the length, 0 or negative
 * errno if the other side was closed. Further descriptors are closed. A message that is longer than the buffer is
 * dropped (-EMSGSIZE).
 */
int message__send(int sock, const void *data, size_t len, int fd);
/* The same to a process that may be compromised and not read: returns -EAGAIN instead of blocking. */
int message__send_now(int sock, const void *data, size_t len, int fd);
/* Can a message, or the end of the other side, be received without waiting? */
bool message__pending(int sock);
ssize_t message__receive(int sock, void *data, size_t size, int *fd);

struct message_wait {
	int limit_ms;
	int stopping_ms; /* used instead of limit_ms once *stop is set */
	const volatile sig_atomic_t *stop; /* may be NULL */
	void (*idle)(void *arg); /* called when a wait begins and every 10 ms during it; may be NULL */
	void *arg;
	/* ms, 0 before the first call, which sets it: the limit holds for all messages of an answer together */
	u64 begun;
};

/* Waits until a message can be received, or the other side has closed. Returns 0 or -ETIMEDOUT. */
int message__await(int sock, struct message_wait *w);
/* Excludes the time from `since` (ms of message__now) to now from the limit. */
void message__exclude(struct message_wait *w, u64 since);
u64 message__now(void);
