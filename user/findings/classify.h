/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sets the kind of finding of each cell of the wait profile, and the code that identifies it. */
#pragma once

#include "findings/finding.h"

/* Sets kind and code of all cells, and the idle time of each thread. */
int classify__cells(const struct finding_input *in);

struct rule;

/* The parts of a stack: ids of frames, 0: there is none. */
struct stack_parts {
	u32 user; /* innermost frame of the user's code: Python outside of the standard library and of packages */
	u32 python; /* innermost Python frame */
	u32 native; /* innermost native frame of a user-space file */
	u32 called; /* native frame outside of the interpreter that the innermost Python frame called */
	bool is_foreign; /* it called it through ctypes or cffi */
	u32 worker; /* frame of the function that takes tasks for a thread of a pool of threads */
	u32 pool; /* frame of a package's pool, such as one of connections, between the user's code and the wait */
	const struct rule *words; /* the innermost rule with words between the user's code and the wait; NULL: none */
	enum finding_kind rule; /* by the library functions between the user's code and the wait; else FINDING_NONE */
	bool serves; /* the user's code was called by an event loop, a server or a pool */
	bool in_request; /* the user's code was called by an event loop or a server */
	bool loop; /* the user's code was called by an event loop */
	bool waits_in_loop; /* an event loop waits for events: it called no code of the user */
	u32 callback; /* of `loop`: the user's function that the loop called */
	bool passes_data; /* the innermost Python frame pickles or copies data for other processes */
	bool collects; /* the innermost code is Python's collector, and not code that it called, such as a finalizer */
	bool retries_database; /* SQLite sleeps, and then tries again whether the database is locked */
};
/* Returns whether it is the first function of a child process; frames of its callers are copies of the parent's. */
bool classify__starts_child(const struct stack_frame *f);
/* Returns what a wait of this kind is for, by the words of a rule: "a name lookup by DNS"; NULL: no rule has words. */
const char *stack_parts__words(const struct stack_parts *parts, enum finding_kind kind);
struct stack_parts stack_parts__of(const struct stacks *stacks, u32 stack);
/*
 * Notes an event loop that no Python frame shows: it calls this frame, or this frame called it, and the loop calls the
 * frames that this one seems to call. Only before the first stack_parts__of().
 */
void stack_parts__note_loop(const struct stacks *stacks, u32 frame, bool is_caller);
