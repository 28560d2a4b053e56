/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The imports that are open in each thread. Included once. */
#pragma once

#include "python_args.bpf.h"

#define IMPORT_DEPTH 64

/* Stack pointers at two sites of one call of a function differ by at most this; those of two calls differ by more. */
#define SAME_FRAME 64

struct open_import {
	u64 sp;
	struct python_import record;
};

/* Imports are in two storages, as one has no room for all: the first IMPORT_HALF, and those nested deeper. */
#define IMPORT_HALF (IMPORT_DEPTH / 2)

struct imports {
	u32 depth; /* of both storages */
	u32 pad;
	struct open_import list[IMPORT_HALF];
};

struct deep_imports {
	struct open_import list[IMPORT_HALF];
};

struct {
	TASK_STORAGE(struct imports);
} python_imports SEC(".maps");

/* Created at its first use, which is rare. */
struct {
	TASK_STORAGE(struct deep_imports);
} python_deep_imports SEC(".maps");

/* The import at a depth; NULL: it is deeper than the limit, or there is no memory. */
static __always_inline struct open_import *import_at(struct imports *in, struct task_struct *task, u32 depth,
						     u64 create)
{
	struct deep_imports *deep;

	if (depth < IMPORT_HALF) {
		barrier_var(depth);
		return &in->list[depth & (IMPORT_HALF - 1)];
	}
	if (depth >= IMPORT_DEPTH)
		return NULL;
	deep = bpf_task_storage_get(&python_deep_imports, task, 0, create);
	if (!deep)
		return NULL;
	/* else clang adds to the pointer before the comparison, which the verifier refuses */
	barrier_var(depth);
	return &deep->list[depth & (IMPORT_HALF - 1)];
}

/*
 * Ends the innermost open import, whose end was not recorded, if its frame is below sp. Returns 1 if there is none. A
 * global function for the same reason as span__drop_top.
 */
__weak __noinline int imports__drop_top(struct imports *in, u64 sp, u16 flag)
{
	struct open_import *o;
	u64 now;

	if (!in)
		return 1;
	o = import_at(in, bpf_get_current_task_btf(), in->depth - 1, 0);
	if (!o || o->sp >= sp)
		return 1;
	in->depth--;
	now = bpf_ktime_get_ns();
	o->record.span.event.time = now;
	o->record.span.event.flags |= flag;
	emit(&o->record, sizeof(o->record));
	if (flag == EVENT_RETURN_NOT_SEEN)
		loss__count(FAMILY_PYTHON, LOSS_RETURN, now);
	return 0;
}

/* Emits imports of the current thread that were left without passing their end. */
static __always_inline void imports__drop(struct imports *in, u64 sp, u16 flag)
{
	for (u32 i = 0; i < IMPORT_DEPTH; i++)
		if (imports__drop_top(in, sp, flag))
			break;
}

/* The record of an import that begins; the caller fills its name. NULL: the process is not selected. */
static __always_inline struct python_import *import_begin(struct pt_regs *ctx, u64 cookie)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct open_import *o;
	struct imports *in;
	u64 sp = ctx->sp;
	u32 depth;

	if (!probe__is_selected(cookie))
		return NULL;
	in = bpf_task_storage_get(&python_imports, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!in) {
		loss__count(FAMILY_PYTHON, LOSS_STORAGE, bpf_ktime_get_ns());
		return NULL;
	}
	/* an audit hook that raises, a cancelled thread, a greenlet: open imports below this frame have been left */
	imports__drop(in, sp + SAME_FRAME, EVENT_RETURN_NOT_SEEN);
	depth = in->depth;
	if (depth >= IMPORT_DEPTH) {
		loss__count(FAMILY_PYTHON, LOSS_DEPTH, bpf_ktime_get_ns());
		return NULL;
	}
	o = import_at(in, task, depth, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!o) {
		loss__count(FAMILY_PYTHON, LOSS_STORAGE, bpf_ktime_get_ns());
		return NULL;
	}
	in->depth = depth + 1;
	o->sp = sp;
	__builtin_memset(&o->record, 0, sizeof(o->record));
	o->record.depth = depth;
	o->record.stack = python__stack_here(STACK_FRAMES);
	span__init(&o->record.span, ID_python_import, cookie);
	return &o->record;
}

/* The beginning of a PyUnicodeObject, up to its state. It is the same from CPython 3.3 to 3.15 in builds with a GIL. */
struct str_head {
	u64 refcount, type;
	s64 length; /* in characters */
	s64 hash;
	u32 state; /* interned: 2 bits, kind: 3, compact, ascii */
};

struct wide_text {
	char *to; /* buffer of PYTHON_MODULE bytes */
	u64 from;
	u32 width; /* bytes per character */
	u32 failed;
};

static long read_character(u32 i, struct wide_text *t)
{
	u32 c = 0, width = t->width;

	if (i >= PYTHON_MODULE - 1 || width > sizeof(c) ||
	    bpf_probe_read_user(&c, width, (void *)t->from + i * width)) {
		t->failed = 1;
		return 1;
	}
	t->to[i] = c && c < 128 ? c : '?';
	return 0;
}

/*
 * Copies a str as ASCII, with a ? for each other character. read_character() loads the width from the struct instead of
 * computing it: newer compilers would spill the computed value to the stack, where the verifier loses its bounds.
 */
static __always_inline bool read_str(char to[PYTHON_MODULE], u64 str, u32 at)
{
	struct wide_text wide = { .to = to };
	u32 kind, length;
	struct str_head h;

	if (bpf_probe_read_user(&h, sizeof(h), (const void *)str) || h.length <= 0)
		return false;
	kind = h.state >> 2 & 7;
	/* only compact strings, which names of modules are */
	if (!(h.state & 32) || (kind != 1 && kind != 2 && kind != 4))
		return false;
	length = h.length < PYTHON_MODULE ? h.length : PYTHON_MODULE - 1;
	if (h.state & 64)
		return !bpf_probe_read_user(to, length, (const void *)(str + at));
	/* Not ASCII. The head then also has a length and a copy as UTF-8, and before 3.12 another length. */
	wide.from = str + at + (at == 48 ? 24 : 16);
	wide.width = kind;
	bpf_loop(length, read_character, &wide, 0);
	return !wide.failed;
}
