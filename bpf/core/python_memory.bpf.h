/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the parts of the walker of Python stacks share: its maps, and the functions that read the walked thread's memory.
 *
 * These take the task whose memory is read. NULL is the current task, whose memory is read without faults. Only sleepable
 * programs, which define PYTHON_WALK_TASKS, can read the memory of another task.
 */
#ifndef SONDE_PYTHON_MEMORY_BPF_H
#define SONDE_PYTHON_MEMORY_BPF_H

#include "core/stack.bpf.h"
#include "core/python.h"

#define PYTHON_GENERATOR   1 /* FRAME_OWNED_BY_GENERATOR in pycore_frame.h, 3.11 to 3.15 */
#define PYTHON_STATES	   8192 /* of threads, looked at in a search */
#define PYTHON_FRAME_WORDS 16
#define PYTHON_CODE_WORDS  32
#define PYTHON_STATE_WORDS 32
#define PYTHON_STATE_READ  184 /* likewise of a thread state */
#define PYTHON_TRIES	   4 /* walks of another thread's stack until two agree */
#define PYTHON_MEMOS	   128
#define PYTHON_CODE_READ   (18 * 8) /* bytes: what is needed lies in them, in all versions */

/* A frame as it was walked. */
struct python_frame {
	u64 code; /* address */
	u64 check; /* distinguishes code objects that were at the same address in turn */
	s64 offset; /* in the bytecode, bytes; -1: not begun */
};

struct python_code_key {
	u64 code;
	u64 check;
	u32 process; /* its id */
	u32 epoch; /* stack_epoch */
};

struct python_stack_key {
	u64 hash;
	u32 process;
	u32 epoch;
};

/*
 * A walk. In a map and not on the stack: of what is on the stack the verifier knows the values, and would follow each
 * step of a loop for itself.
 */
struct python_cursor {
	u64 code_type;
	u64 state; /* of the thread that is walked */
	u64 frame; /* the next one's address, 0: that was all */
	u64 anchor; /* one that was before: met again, it is a cycle */
	u64 hash; /* of all frames, but for where the innermost one is */
	s64 top; /* offset of the innermost frame */
	u64 same; /* what a walk and the next one have to agree on */
	u64 epoch; /* while it stays, a code object that was seen is the same one */
	u32 n, max;
	u32 bad; /* enum loss_reason */
	u32 cut;
	u32 process; /* its id */
	u32 is_current; /* the walked thread is the current one: its stack does not change meanwhile */
	u32 agreed; /* two walks found the same, or is_current: the stack is right */
	u32 layout;
	u32 pid;
	u32 left; /* frames yet to be looked up, from the outermost on */
	u32 caller; /* id of the last one */
	u32 failed;
};

/* Of the thread states of all interpreters, the one of the thread with this FS base. */
struct python_search {
	u64 interp; /* the interpreter whose thread states are searched now; 0: go on with the next one */
	u64 next; /* interpreter */
	u64 state;
	u64 self;
	u64 gil; /* its interpreter's, 0: any */
	u64 found;
};

/* What is being sent of a code object. */
struct python_text {
	u64 from;
	u32 total, at; /* bytes */
	u32 failed; /* the ring had no room */
	u32 pad;
};

/* A code object that was looked into. */
struct python_memo {
	u64 code;
	u64 check;
	u64 epoch;
};

/* Of each thread that walks, in a storage of its own: together the two are larger than one may be. */
struct python_known {
	struct python_memo memos[PYTHON_MEMOS];
	struct raw_code raw;
};

/* Of each thread that walks: what it knows of itself, and room to work in. */
struct python_thread {
	u64 state; /* its PyThreadState when last looked for */
	u32 process; /* id of the process that had it */
	u32 busy; /* a walk is going on: an interrupt or the scheduler may want one more, see struct python_nested */
	struct python_cursor cursor;
	struct python_search search;
	struct python_text sending;
	u64 walks;
	u64 words[PYTHON_STATE_WORDS]; /* of a thread state */
	u64 frame[PYTHON_FRAME_WORDS];
	u64 code[PYTHON_CODE_WORDS];
	u64 text[8];
	struct python_frame frames[STACK_FRAMES];
};

/*
 * A CPU's room for a walk that begins while the thread is in one: programs on functions can be interrupted and preempted, and
 * then the clock's program or that at sched_switch walks the same thread. Neither of these two can be preempted.
 */
struct python_nested {
	struct python_thread thread;
	struct python_known known;
};

/* What the functions of loops get. All else is in the thread's room: of stack there are 512 bytes for all calls. */
struct python_walk {
	struct python_thread *t;
	struct python_known *known;
	const struct python_layout *l;
#ifdef PYTHON_WALK_TASKS
	struct task_struct *task;
#endif
};

struct python_processes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct python_process);
};

struct python_files_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PYTHON_FILES);
	__type(key, struct python_file_key);
	__type(value, struct python_file);
};

struct python_layouts_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PYTHON_LAYOUTS);
	__type(key, u32);
	__type(value, struct python_layout);
};

struct python_threads_map {
	TASK_STORAGE(struct python_thread);
};

struct python_knowns_map {
	TASK_STORAGE(struct python_known);
};

struct python_nested_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct python_nested);
};

struct python_codes_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, struct python_code_key);
	__type(value, u32);
};

struct python_stacks_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, struct python_stack_key);
	__type(value, u32);
};

extern struct python_processes_map python_processes SEC(".maps");
extern struct python_files_map python_files SEC(".maps");
extern struct python_layouts_map python_layouts SEC(".maps");
extern struct python_threads_map python_threads SEC(".maps");
extern struct python_knowns_map python_knowns SEC(".maps");
extern struct python_nested_map python_nested SEC(".maps");
extern struct python_codes_map python_codes SEC(".maps");
extern struct python_stacks_map python_stacks SEC(".maps");

static __always_inline long python__read(void *to, u32 size, u64 from, struct task_struct *task)
{
	if (task)
		return bpf_copy_from_user_task(to, size, (void *)from, task, 0);
	return bpf_probe_read_user(to, size, (void *)from);
}

static __always_inline u64 python__word(u64 from, struct task_struct *task)
{
	u64 word;

	return python__read(&word, sizeof(word), from, task) ? 0 : word;
}

static __always_inline u64 python__mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

static __always_inline u64 frame_word(const struct python_thread *t, u32 offset)
{
	return t->frame[offset / 8 & (PYTHON_FRAME_WORDS - 1)];
}

static __always_inline u64 code_word(const struct python_thread *t, u32 offset)
{
	return t->code[offset / 8 & (PYTHON_CODE_WORDS - 1)];
}

static __always_inline u64 state_word(const struct python_thread *t, u32 offset)
{
	return t->words[offset / 8 & (PYTHON_STATE_WORDS - 1)];
}

/*
 * bpf_loop() with the function for the memory that is read. task is NULL or not when this is compiled, and only what
 * can read another task's memory knows the second function.
 */
#ifdef PYTHON_WALK_TASKS
#define PYTHON_LOOP(n, function, context, task) bpf_loop(n, task ? function##_there : function##_here, context, 0)
#else
#define PYTHON_LOOP(n, function, context, task) bpf_loop(n, function##_here, context, 0)
#endif

#endif
