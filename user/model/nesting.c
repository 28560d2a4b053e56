// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/nesting.h"

#include <errno.h>

/*
 * Number of each thread's last outermost calls that are stored. Inner calls end before their outer call, so that a
 * later call may contain them.
 */
#define CALLS_STORED 256

struct thread_key {
	u32 pid, tid;
};

struct thread_calls {
	u32 n; /* calls that were added and not removed */
	u32 dropped; /* the oldest of these, which were overwritten */
	struct nesting_call last[CALLS_STORED];
};

void nesting__init(struct nesting *n, void (*inner)(const struct nesting_call *call, void *arg), void *arg)
{
	*n = (struct nesting){ .inner = inner, .arg = arg };
	map__init(&n->threads, sizeof(struct thread_key), sizeof(struct thread_calls));
}

void nesting__free(struct nesting *n)
{
	map__free(&n->threads);
}

int nesting__add(struct nesting *n, const struct nesting_call *call)
{
	struct thread_key key = { call->pid, call->tid };
	struct thread_calls *t = map__get(&n->threads, &key);
	const struct nesting_call *last;

	if (!t)
		return -ENOMEM;
	while (t->n > t->dropped) {
		last = &t->last[(t->n - 1) % CALLS_STORED];
		if (last->start < call->start || last->end > call->end)
			break;
		n->inner(last, n->arg);
		t->n--;
	}
	t->last[t->n++ % CALLS_STORED] = *call;
	if (t->n - t->dropped > CALLS_STORED)
		t->dropped++;
	return 0;
}
