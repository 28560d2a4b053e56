/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by meters.c and meter_messages.c, in the worker, and meter_child.c. */
#pragma once

#include "record/meter.h"

#define METER_LIBRARIES	  4 /* files of this name: another one may be of another architecture */
#define METER_PATH_MAX	  256
#define METER_QUERY_MAX	  64
#define METER_MESSAGE_MAX 8192
#define METER_TEXT_MAX	  256

enum meter_message_kind {
	METER_RECORDS = 1, /* each is a u32 with its size, a u32 0, and the record, padded to 8 bytes */
	METER_REPORT, /* n: enum meter_report; the text follows */
	METER_MISSED, /* n readings are missing */
};

struct meter_message {
	u32 kind, n;
	char data[METER_MESSAGE_MAX];
};
#define METER_HEAD __builtin_offsetof(struct meter_message, data)

/* In memory that both processes share. The child writes it, so it is untrusted. */
struct meter_watch {
	u64 since; /* CLOCK_MONOTONIC ns: a query began; 0: none is made now */
	u32 is_start;
	char query[METER_QUERY_MAX];
};

struct meter_child {
	const struct meter *meter;
	u64 period; /* ns */
	int sock;
	struct meter_watch *watch;
	char libraries[METER_LIBRARIES][METER_PATH_MAX]; /* "": no more */
	struct meter_message records; /* n: bytes of data */
	bool is_gone; /* the worker takes no more messages */
};

struct schema;

/*
 * Calls fn with each record of a message of METER_RECORDS that the family may have. Returns the number of others.
 * bytes: of the message's data.
 */
u32 meter_message__each(const struct meter_message *m, size_t bytes, const struct schema *schema, u8 family,
			void (*fn)(void *arg, struct event *e, u32 size), void *arg);
/* Copies the text of a message of METER_REPORT, without control characters. */
void meter_message__text(const struct meter_message *m, size_t bytes, char out[METER_TEXT_MAX]);

/* Runs in the child. */
void meter_child__run(struct meter_child *c) __attribute__((noreturn));
