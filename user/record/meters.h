/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The meters of a recording, in the worker: their children's records and failures (record/meter.h). */
#pragma once

#include <sys/types.h>

#include "core/types.h"

struct session;
struct meter;
struct meter_watch;

#define METERS_MAX 4

struct meters {
	struct running_meter {
		const struct meter *meter;
		u8 family;
		bool is_requested; /* -t or an option names the family */
		int sock; /* -1: the child has ended, or was given no more time */
		pid_t pid; /* 0: it has been waited for */
		struct meter_watch *watch;
		u64 period; /* ns */
		u64 missing_since; /* ns: readings are missing from then on; 0: none are */
		u32 reports; /* printed ones */
		bool is_absent; /* there is nothing to read, and so nothing is lost */
	} list[METERS_MAX];
	u32 n;
	u32 n_absent; /* requested families that have nothing to read */
};

/* Handles what the children sent, and ends those that hang. */
void meters__tick(struct session *s, u64 now);
/* The same when tracing ends, and ends all of them. */
void meters__finish(struct session *s);
void meters__free(struct session *s);
