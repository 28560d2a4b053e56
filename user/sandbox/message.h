/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages between the processes of sonde, over SOCK_SEQPACKET sockets. */
#ifndef SONDE_SANDBOX_MESSAGE_H
#define SONDE_SANDBOX_MESSAGE_H

#include "core/types.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * One message with at most one descriptor (-1: none). Receiving: the length,
 * 0 or negative errno at the end of the other side; more descriptors than one
 * are not taken, and of a message that is longer than there is room for nothing is (-EMSGSIZE).
 */
int message__send(int sock, const void *data, size_t len, int fd);
/* To a process that may have been taken over, and may not read: -EAGAIN instead of a wait. */
int message__send_now(int sock, const void *data, size_t len, int fd);
/* Can a message, or the end of the other side, be received without a wait? */
bool message__pending(int sock);
ssize_t message__receive(int sock, void *data, size_t size, int *fd);

struct message_wait {
	int limit_ms;
	int stopping_ms; /* instead of that once *stop is set */
	const volatile sig_atomic_t *stop; /* may be NULL */
	void (*idle)(void *arg); /* called every 50 ms meanwhile; may be NULL */
	void *arg;
	/* ms, set by the first call, so that the limit is one for all messages of an answer; 0 before it */
	u64 begun, idled;
};

/* Waits until a message can be received, or the other side has ended. 0 or -ETIMEDOUT. */
int message__await(int sock, struct message_wait *w);
/* The time since then (ms of message__now) was not the other side's. */
void message__exclude(struct message_wait *w, u64 since);
u64 message__now(void);

#endif
