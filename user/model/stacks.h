/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The stacks of a trace: resolves the ids in fields of unit `stack`. */
#pragma once

#include "core/meta.h"
#include "trace/reader.h"

struct stacks;

/* Most frames of a stack. A recording writes at most some 640: STACK_FRAMES of Python, as many native, some kernel. */
#define STACKS_DEEPEST 1024

/* Buffer size for the label or function of any frame with names of usual length */
#define STACK_LABEL 512

struct stack_frame {
	u32 caller; /* id of the caller's frame; 0: none */
	u32 code; /* the same for all frames in one function, 0: not known */
	u32 line; /* the line that is executed; 0: not known */
	u32 first_line; /* of the function, 0: not known */
	s64 kind; /* enum frame_kind */
	u64 offset; /* of the instruction, see struct meta_frame */
	const char *name; /* of the function, demangled, "" if not known; lives as long as the stacks */
	const char *symbol; /* the same as the file has it: "_ZN4node5StartEiPPc" */
	const char *file;
	const char *source; /* native: the source file that `line` is of, "" if not known */
	enum code_origin {
		ORIGIN_UNKNOWN, /* no process of the trace stated where its standard library lies */
		ORIGIN_LIBRARY, /* in the standard library of one */
		ORIGIN_SCRIPT, /* the file that a process was started to run */
		ORIGIN_ELSEWHERE,
	} origin;
};

/* Reads all frames; t must outlive it. A trace without stacks is fine. 0 or negative errno. */
int stacks__load(struct stacks **out, struct trace *t);
void stacks__free(struct stacks *s);

/* Returns the innermost frame of a stack; NULL: id is 0, or not in the trace. */
const struct stack_frame *stacks__frame(const struct stacks *s, u32 id);
/* All frames of the trace: stacks__id(s, i) for i < stacks__count(s), by rising id. */
u32 stacks__count(const struct stacks *s);
u32 stacks__id(const struct stacks *s, u32 i);
/* Returns the number of frames whose caller is missing or invalid (a cycle, too deep): their stacks begin with them. */
u32 stacks__broken(const struct stacks *s);
/* Returns the number of frames of the stack, at most STACKS_DEEPEST; 0: the trace has no such frame. */
u32 stacks__depth(const struct stacks *s, u32 id);
/*
 * Returns room for what a reader finds out about a frame, so that stacks that share it need not be walked again: `size`
 * bytes, the same at each call, zero at first. NULL: no memory, or the trace has no such frame.
 */
void *stacks__room(const struct stacks *s, u32 id, size_t size);
/* Fills ids[] from the outermost to the innermost frame; returns how many, and the innermost max of a deeper stack. */
u32 stacks__path(const struct stacks *s, u32 id, u32 *ids, u32 max);
/* Returns the innermost frame of the user's code (Python, but not its library and not frozen), else the innermost. */
u32 stacks__top_user(const struct stacks *s, u32 id);
/* Returns the file that the frame's line is in; if the line is not known, the file with the code. */
const char *stack_frame__source(const struct stack_frame *f);
/*
 * Writes "encoder.py:257 iterencode" (Python), "memcpy (libc.so.6)" or "add (sums.c:12)" (native), "?" for 0. Returns
 * buf.
 */
char *stacks__label(const struct stacks *s, u32 id, char *buf, size_t size);
/* Returns whether the frame is the user's own code, as in stacks__top_user. */
bool stack_frame__is_users(const struct stack_frame *f);
/* Is it the user's own function of a script that a JIT compiler has compiled, such as JavaScript's? */
bool stack_frame__is_script(const struct stack_frame *f);
/* Is it Python code of the standard library? */
bool stack_frame__is_library(const struct stack_frame *f);
/* Is it the code of an installed package? */
bool stack_frame__is_package(const struct stack_frame *f);
/* Is it the user's code, and no package's? */
bool stack_frame__is_own(const struct stack_frame *f);
/*
 * Returns whether the frame is code that a library made at run time, such as the methods of a proxy or of a data class.
 * It may also be the user's, of `python -c`; so it counts as the user's where a stack has no other.
 */
bool stack_frame__is_generated(const struct stack_frame *f);
/* Returns the hash of the frame's name in stacks__folded(). */
u64 stack_frame__name_hash(const struct stack_frame *f);
/* Does a native function have no symbol, so that its name is the file's with an address? */
bool stack_frame__is_address(const struct stack_frame *f);
/*
 * Writes the function with what it belongs to: "json.encoder.iterencode" (standard library), "sqlalchemy's
 * LazyLoader._emit_lazyload" (a package), else as stack_frame__native().
 */
char *stack_frame__qualified(const struct stack_frame *f, char *buf, size_t size);
/* Returns a hash of the function, by its name and file: the same for processes that have their own code of it. */
u64 stack_frame__hash(const struct stack_frame *f);
/* As stacks__function; NULL: "?" */
char *stack_frame__function(const struct stack_frame *f, char *buf, size_t size);
/* Writes the frame's function without the line: "iterencode (encoder.py)", "memcpy (libc.so.6)", "do_futex_[k]". */
char *stacks__function(const struct stacks *s, u32 id, char *buf, size_t size);
/*
 * As stack_frame__function, but of a native function without a name it writes only the file, as an address in it means
 * nothing to a reader: "libcrypto.so.3".
 */
char *stack_frame__native(const struct stack_frame *f, char *buf, size_t size);
/*
 * Writes "main;load;iterencode", the stack as flame graphs have it, without characters that would break the line.
 * Returns the length; size or more: it was cut.
 */
size_t stacks__folded(const struct stacks *s, u32 id, char *buf, size_t size);
