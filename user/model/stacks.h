/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The stacks of a trace: resolves the ids in fields of unit `stack`. */
#ifndef SONDE_MODEL_STACKS_H
#define SONDE_MODEL_STACKS_H

#include "core/meta.h"
#include "trace/reader.h"

struct stacks;

/* Maximum frames of a stack: a recording writes at most some 640 (STACK_FRAMES of Python, as many native ones, the kernel's). */
#define STACKS_DEEPEST 1024

/* Buffer size that is enough for the label or function of any frame with names of usual length */
#define STACK_LABEL 512

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
/* All frames of the trace: stacks__id(s, i) for i < stacks__count(s), by rising id. */
u32 stacks__count(const struct stacks *s);
u32 stacks__id(const struct stacks *s, u32 i);
/* Frames whose caller is not in the trace, or can't be it (a circle, too deep): their stacks begin with them. */
u32 stacks__broken(const struct stacks *s);
/* Number of frames of the stack, at most STACKS_DEEPEST regardless of the file; 0: the trace has no such frame. */
u32 stacks__depth(const struct stacks *s, u32 id);
/* Fills ids[] from the outermost to the innermost frame; returns how many (the innermost max if there are more). */
u32 stacks__path(const struct stacks *s, u32 id, u32 *ids, u32 max);
/* The innermost frame that is the user's own code: not Python's standard library, not frozen, not native; else the innermost. */
u32 stacks__top_user(const struct stacks *s, u32 id);
/* "encoder.py:257 iterencode" (Python), "memcpy (libc.so.6)" (native) into buf; returns buf. "?" for 0. */
char *stacks__label(const struct stacks *s, u32 id, char *buf, size_t size);
/* Is it the user's own code, as in stacks__top_user? */
bool stack_frame__is_users(const struct stack_frame *f);
/* As stacks__function has it; NULL: "?" */
char *stack_frame__function(const struct stack_frame *f, char *buf, size_t size);
/* "iterencode (encoder.py)", "memcpy (libc.so.6)", "do_futex_[k]": the frame's function alone, without the line */
char *stacks__function(const struct stacks *s, u32 id, char *buf, size_t size);
/* "main;load;iterencode": the whole stack as flame graphs have it, cleaned of what would break the line. -ENOSPC.. as snprintf */
size_t stacks__folded(const struct stacks *s, u32 id, char *buf, size_t size);

#endif
