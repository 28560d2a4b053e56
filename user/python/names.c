// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The names of threading.Thread objects: module threading's dictionary _active has all that run (Lib/threading.py), in
 * each interpreter. The kernel has at most the first 15 bytes of a name, and before 3.14 none.
 */
#include "python/names.h"

#include "python/objects.h"

#include <stdlib.h>
#include <string.h>

#define INTERPRETERS_MAX 64

struct reading {
	void (*fn)(u32 own_tid, const char *name, void *arg);
	void *arg;
};

static void on_thread(struct snapshot *l, u64 thread, void *arg)
{
	struct reading *r = arg;
	s64 tid = object__number(l, object__attribute(l, thread, "_native_id"));
	char *name = tid > 0 ? snapshot__text(l, object__attribute(l, thread, "_name")) : NULL;

	/* what threading calls a thread that it did not start */
	if (name && *name && strncmp(name, "Dummy-", strlen("Dummy-")) != 0)
		r->fn((u32)tid, name, r->arg);
	free(name);
}

void snapshot__names(struct snapshot *l, void (*fn)(u32 own_tid, const char *name, void *arg), void *arg)
{
	u64 interpreter = snapshot__word(l, l->runtime + l->layout.interpreters);
	struct reading r = { fn, arg };

	for (u32 i = 0; i < INTERPRETERS_MAX && interpreter; i++) {
		object__each_value(l, object__of_module(l, interpreter, "threading", "_active"), NAMES_MAX, on_thread,
				   &r);
		interpreter = snapshot__word(l, interpreter + l->layout.interp_next);
	}
}
