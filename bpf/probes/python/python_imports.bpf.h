/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Imports that are going on in each thread. Included once. */
#ifndef SONDE_PYTHON_IMPORTS_BPF_H
#define SONDE_PYTHON_IMPORTS_BPF_H

#include "python_args.bpf.h"

#define IMPORT_DEPTH 64

/* Two places of one function are no further apart in their stack pointers; two calls of it are. */
#define SAME_FRAME 64

struct open_import {
	u64 sp;
	struct python_import record;
};

struct imports {
	u32 depth; /* may be more than there is room for */
	u32 pad;
	struct open_import list[IMPORT_DEPTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct imports);
} python_imports SEC(".maps");

static __always_inline struct open_import *top_import(struct imports *in)
{
	u32 top = in->depth - 1;

	/* the verifier wants a mask: it forgets the comparison */
	return top < IMPORT_DEPTH ? &in->list[top & (IMPORT_DEPTH - 1)] : NULL;
}

/* Not static: the verifier then looks at it once. Sends imports that were left without passing their end. */
__weak __noinline int imports__drop(struct imports *in, u64 sp, u16 flag)
{
	u64 now = bpf_ktime_get_ns();
	struct open_import *o;

	if (!in)
		return 0;
	for (u32 i = 0; i < IMPORT_DEPTH; i++) {
		o = top_import(in);
		if (!o || o->sp >= sp)
			break;
		in->depth--;
		o->record.span.event.time = now;
		o->record.span.event.flags |= flag;
		emit(&o->record, sizeof(o->record));
		if (flag == EVENT_RETURN_NOT_SEEN)
			loss__count(FAMILY_PYTHON, LOSS_RETURN, now);
	}
	return 0;
}

/* The record of an import that begins; its name is still to be filled. NULL: not wanted. */
static __always_inline struct python_import *import_begin(struct pt_regs *ctx, u64 cookie)
{
	struct open_import *o;
	struct imports *in;
	u64 sp = ctx->sp;
	u32 depth;

	if (!wanted(cookie))
		return NULL;
	in = bpf_task_storage_get(&python_imports, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!in) {
		loss__count(FAMILY_PYTHON, LOSS_STORAGE, bpf_ktime_get_ns());
		return NULL;
	}
	/* an audit hook that raises, a cancelled thread, a greenlet: what is open below this frame has been left */
	imports__drop(in, sp + SAME_FRAME, EVENT_RETURN_NOT_SEEN);
	depth = in->depth;
	if (depth >= IMPORT_DEPTH) {
		loss__count(FAMILY_PYTHON, LOSS_DEPTH, bpf_ktime_get_ns());
		return NULL;
	}
	in->depth = depth + 1;
	o = &in->list[depth & (IMPORT_DEPTH - 1)];
	o->sp = sp;
	__builtin_memset(&o->record, 0, sizeof(o->record));
	o->record.depth = depth;
	o->record.stack = python__stack(STACK_FRAMES);
	span__init(&o->record.span, ID_python_import, cookie);
	return &o->record;
}

/* The head of a PyUnicodeObject up to its state, the same from 3.3 to 3.15 with a GIL. */
struct str_head {
	u64 refcount, type;
	s64 length; /* characters */
	s64 hash;
	u32 state; /* interned: 2 bits, kind: 3, compact, ascii */
};

/* Characters of a str that is not ASCII as ASCII, with a ? for what is not. */
static __noinline int read_wide(char *to, const void *from, u32 kind, u32 length)
{
	u32 c, i;

	for (i = 0; i < PYTHON_MODULE - 1 && i < length; i++) {
		c = 0;
		if (bpf_probe_read_user(&c, kind == 1 ? 1 : kind == 2 ? 2 : 4, from + i * kind))
			return -1;
		to[i] = c && c < 128 ? c : '?';
	}
	return 0;
}

static __always_inline bool read_str(char to[PYTHON_MODULE], u64 str, u32 at)
{
	u32 kind, length;
	struct str_head h;

	if (bpf_probe_read_user(&h, sizeof(h), (const void *)str) || h.length <= 0)
		return false;
	kind = h.state >> 2 & 7;
	/* only what is stored with its head, as names of modules are */
	if (!(h.state & 32) || (kind != 1 && kind != 2 && kind != 4))
		return false;
	length = h.length < PYTHON_MODULE ? h.length : PYTHON_MODULE - 1;
	if (h.state & 64)
		return !bpf_probe_read_user(to, length, (const void *)(str + at));
	/* its head has a length and a copy as UTF-8 more, and before 3.12 another length */
	return !read_wide(to, (const void *)(str + at + (at == 48 ? 24 : 16)), kind, length);
}

#endif
