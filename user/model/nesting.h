/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the calls of a thread that are nested in other recorded calls: their time is part of the outer call's, and is
 * counted once.
 */
#pragma once

#include "util/map.h"

struct nesting_call {
	u32 pid, tid;
	u32 function; /* the caller's number for the function */
	u32 unused;
	u64 start, end; /* ns */
};

struct nesting {
	struct map threads;
	void (*inner)(const struct nesting_call *call, void *arg);
	void *arg;
};

/* inner is called once for each call within another call. */
void nesting__init(struct nesting *n, void (*inner)(const struct nesting_call *call, void *arg), void *arg);
void nesting__free(struct nesting *n);
/* Adds a call; they must be in order of their ends (model/order.h). 0 or -ENOMEM. */
int nesting__add(struct nesting *n, const struct nesting_call *call);
