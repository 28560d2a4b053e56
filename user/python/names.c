// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The names of threading.Thread objects: module threading's dictionary _active has all that run (Lib/threading.py).
 * From 3.14 on Python gives its names to the kernel, which has the first 15 bytes.
 */
#include "python/names.h"

#include "python/objects.h"
#include "python/task_layout.h"

#include <stdlib.h>

#define ACTIVE_MAX 4096

struct reading {
	void (*fn)(u32 own_tid, const char *name, void *arg);
	void *arg;
};

static void on_thread(struct snapshot *l, u64 thread, void *arg)
{
	struct reading *r = arg;
	s64 tid = object__number(l, object__attribute(l, thread, "_native_id"));
	char *name = tid > 0 ? snapshot__text(l, object__attribute(l, thread, "_name")) : NULL;

	if (name && *name)
		r->fn((u32)tid, name, r->arg);
	free(name);
}

void snapshot__names(struct snapshot *l, void (*fn)(u32 own_tid, const char *name, void *arg), void *arg)
{
	u64 interpreter = snapshot__main_interpreter(l), module;
	struct reading r = { fn, arg };
	struct task_layout layout;

	if (l->layout.version >= 0x030e || !interpreter || task_layout__of(l, &layout) || !layout.modules)
		return;
	module = object__item(l, snapshot__word(l, interpreter + layout.modules), "threading");
	if (object__type(l, module) != OBJECT_MODULE)
		return;
	object__each_value(l, object__item(l, snapshot__word(l, module + MODULE_DICT), "_active"), ACTIVE_MAX,
			   on_thread, &r);
}
