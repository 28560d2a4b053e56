/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests of `sonde control` to a running recording: datagrams to an abstract socket that is named after the
 * recording's process. Only root and the user who started the recording may send them; the kernel states who did.
 */
#pragma once

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "core/types.h"

#define CONTROL_VERSION 1
#define CONTROL_TEXT	512

enum control_what {
	CONTROL_PAUSE = 1,
	CONTROL_RESUME,
	CONTROL_MARK,
	CONTROL_TRACE,
};

struct control_request {
	u32 version;
	u32 what;
	char text[CONTROL_TEXT]; /* of a mark; "+cuda,-nccl" */
};

struct control_answer {
	u32 version;
	s32 error; /* 0 or negative errno */
	char text[CONTROL_TEXT]; /* why it was refused */
};

/* A message of either side, and who sent it as the kernel states. */
struct control_message {
	struct sockaddr_un from;
	socklen_t from_len;
	struct ucred sender;
};

struct session;

struct control {
	int sock; /* -1: none */
	uid_t user; /* who started the recording */
};

/* The socket's name, for the recording of this process. Returns the length of the address. */
socklen_t control__address(struct sockaddr_un *a, u32 pid);
/* Creates a socket that learns who sends to it; negative errno: failed. pid 0: it gets any name. */
int control__socket(u32 pid);
/* Receives a message of exactly `size` bytes without waiting. Returns 0 or negative errno. */
int control__receive(int sock, void *data, size_t size, struct control_message *m);

/* Called while this process has its privileges. Without a socket the recording can't be controlled. */
void control__open(struct session *s);
void control__poll(struct session *s);
void control__close(struct control *c);
