/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages between the processes of sonde, over SOCK_SEQPACKET sockets. */
#ifndef SONDE_ATTACH_MESSAGE_H
#define SONDE_ATTACH_MESSAGE_H

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * One message with at most one descriptor (-1: none). Receiving: the length,
 * 0 or negative errno at the end of the other side; more descriptors than one
 * are not taken.
 */
int message__send(int sock, const void *data, size_t len, int fd);
ssize_t message__receive(int sock, void *data, size_t size, int *fd);

struct message_wait {
	int limit_ms;
	int stopping_ms; /* instead of that once *stop is set */
	const volatile sig_atomic_t *stop; /* may be NULL */
	void (*idle)(void *arg); /* called every 50 ms meanwhile; may be NULL */
	void *arg;
};

/* Waits until a message can be received, or the other side has ended. 0 or -ETIMEDOUT. */
int message__await(int sock, const struct message_wait *w);

#endif
