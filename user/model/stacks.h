/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The stacks of a trace: what the ids in fields of unit `stack` stand for. */
#ifndef SONDE_MODEL_STACKS_H
#define SONDE_MODEL_STACKS_H

#include "core/meta.h"
#include "trace/reader.h"

struct stacks;

struct stack_frame {
	u32 caller; /* id of the frame that called it, 0: none */
	u32 code; /* the same for all frames in one function, 0: not known */
	u32 line; /* being executed, 0: not known */
	u32 first_line; /* of the function, 0: not known */
	s64 kind; /* enum frame_kind */
	u64 offset; /* of the instruction, see struct meta_frame */
	const char *name; /* of the function, "" if not known; live as long as the trace */
	const char *file;
};

/* Reads all frames; t must outlive it. A trace without stacks is fine. 0 or negative errno. */
int stacks__load(struct stacks **out, struct trace *t);
void stacks__free(struct stacks *s);

/* The innermost frame of a stack, NULL: id 0, or the trace has no such frame. */
const struct stack_frame *stacks__frame(const struct stacks *s, u32 id);
/* Frames of the stack, bounded whatever the file says. */
u32 stacks__depth(const struct stacks *s, u32 id);
/* Fills ids[] from the outermost to the innermost frame; returns how many (the innermost max if there are more). */
u32 stacks__path(const struct stacks *s, u32 id, u32 *ids, u32 max);
/* The innermost frame that is the user's own code: not Python's standard library, not frozen, not native; else the innermost. */
u32 stacks__top_user(const struct stacks *s, u32 id);
/* "encoder.py:257 iterencode" (Python), "memcpy (libc.so.6)" (native) into buf; returns buf. "?" for 0. */
char *stacks__label(const struct stacks *s, u32 id, char *buf, size_t size);
/* "main;load;iterencode": the whole stack as flame graphs have it, cleaned of what would break the line. -ENOSPC.. as snprintf */
size_t stacks__folded(const struct stacks *s, u32 id, char *buf, size_t size);

#endif
