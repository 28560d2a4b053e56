/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls that may wait forever. A file system whose server does not answer makes the kernel wait in each call that
 * concerns its files, and in each that needs a lock of a process that waits for one; such a wait can't be ended. So
 * commands that inspect processes let a child make these calls. It is abandoned after a limit, and the next call gets
 * another child. A recording has the opener instead (attach/opener.h).
 *
 * A call about a process may take 2 s. Each child that a user's processes cost halves that user's limit; below 0.1 s
 * only root's processes are asked. All users other than root together have 12 s. Subordinate ids count for their owner
 * (util/account.h).
 */
#pragma once

#include "core/types.h"

#include <stdbool.h>
#include <stddef.h>

/* Why a call got no answer, about the process */
#define BOUNDED_LATE "it waits for a file system whose server does not answer; end the process or that server"

struct bounded_reply {
	int fd; /* opened by the function; -1: none */
	char *bytes; /* added by the function; the caller of bounded__call frees them */
	size_t n;
};

/* Runs in the child. Returns the result of bounded__call. */
typedef int bounded_fn(const void *arg, struct bounded_reply *reply);

/* Appends to the reply, up to 16 MiB. false: there is no room. */
bool bounded__add(struct bounded_reply *reply, const void *bytes, size_t n);
/*
 * Makes a child call the function with a copy of arg. pid: the process that it concerns; 0: none, which counts as
 * root's. Returns its result, or -ETIMEDOUT if it was abandoned or not asked; the reply is then empty.
 */
int bounded__call(u32 pid, bounded_fn *fn, const void *arg, size_t size, struct bounded_reply *reply);
/* Shares the limits with the processes that are forked from here on, which have a child each. */
void bounded__share(void);
/* Ends the child, which has the privileges that this process had at its first call. */
void bounded__forget(void);
