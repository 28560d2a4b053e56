/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the parts of the Python stack walker share: its maps, and the functions that read the walked thread's memory.
 *
 * These functions take the task whose memory is read. NULL means the current task, whose memory is read without
 * faults. Only sleepable programs, which define PYTHON_WALK_TASKS, can read the memory of another task.
 */
#pragma once

#include "core/stack.bpf.h"
#include "core/python.h"

#define PYTHON_GENERATOR   1 /* FRAME_OWNED_BY_GENERATOR in pycore_frame.h, 3.11 to 3.15 */
#define PYTHON_STACK_MAX   (1ULL << 30) /* bytes of a C stack, at most */
#define PYTHON_STATES	   8192 /* thread states that are read in one search, at most */
#define PYTHON_FRAME_WORDS 16
#define PYTHON_CODE_WORDS  32
#define PYTHON_STATE_WORDS 32
#define PYTHON_STATE_MAX   4096 /* bytes of a PyThreadState, of any version */
#define PYTHON_STATE_READ  184 /* bytes of a thread state that are read */
#define PYTHON_TRIES	   4 /* walks of another thread's stack until two of them agree */
#define PYTHON_MEMOS	   128
#define PYTHON_CODE_READ   (20 * 8) /* bytes that are read: all members in use lie in them, in all versions */

/* A bit of an address of a code object: native code called the function. */
#define PYTHON_ENTRY 1ULL

/* A frame as the walk has read it. */
struct python_frame {
	u64 code; /* address, and PYTHON_ENTRY */
	u64 check; /* distinguishes code objects that were at the same address one after the other */
	s64 offset; /* of the instruction in the bytecode, bytes; -1: the frame has not begun */
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
 * The state of a walk. It is in a map and not on the stack, because the verifier tracks the value of each number on
 * the stack and would follow each iteration of a loop separately.
 */
struct python_cursor {
	u64 code_type;
	u64 state; /* PyThreadState of the walked thread */
	u64 frame; /* address of the next frame; 0: the walk is complete */
	u64 anchor; /* address of an earlier frame: a walk that meets it again is in a cycle */
	u64 hash; /* over all frames, except for the position in the innermost one */
	s64 top; /* bytecode offset of the innermost frame */
	u64 same; /* two successive walks must agree on this */
	u64 epoch; /* as long as it is unchanged, a code object at a known address is the same object */
	u32 n, max;
	u32 loss; /* enum loss_reason */
	u32 is_outer; /* the frames that are left out are behind it */
	u32 process; /* its id */
	u32 is_current; /* the walked thread is the current one: its stack does not change during the walk */
	u32 agreed; /* two walks agreed, or is_current: the stack is consistent */
	u32 is_searched; /* the state was searched for, so its frames have to be on the walked thread's stack */
	u32 is_foreign; /* they are not: another thread runs it */
	u32 which; /* the CPython that is asked: an index in python_process.at */
	u32 n_skipped; /* frames behind the innermost ones whose links were followed */
	u32 layout;
	u32 pid;
	u32 n_left; /* frames still to be looked up, from the outermost one inwards */
	u32 caller; /* id of the frame that was looked up last */
	u32 failed;
	u32 now; /* when the walk began, in units of 2^20 ns; 0: the interpreter shows when code objects are freed */
};

/* Searches the thread states of all interpreters for that of the thread with this FS base. */
struct python_search {
	u64 interp; /* the interpreter whose thread states are searched now; 0: continue with the next one */
	u64 next; /* the next interpreter */
	u64 state;
	u64 self;
	u64 gil; /* only of the interpreter with this GIL; 0: of any */
	u64 found;
	u64 candidate; /* the state that is examined; 0: none yet */
	u64 frame; /* of the candidate */
	u64 stack; /* the searched thread's stack pointer */
	u64 stack_size; /* bytes from there to the end of the stack; 0: it does not run on the stack it was made with */
	u64 runtime;
	u32 has_foreign; /* ask for what lies on the stack: the process has threads that use another one's state */
	u32 asks_holder;
	u32 is_holder; /* the candidate is the GIL's holder, not one of the list */
	u32 pad;
};

/* The part of a code object that is being sent. */
struct python_text {
	u64 from;
	u32 total, at; /* bytes */
	u32 failed; /* the ring had no room */
	u32 pad;
};

/* A code object that was read. Times are in units of 2^20 ns. */
struct python_memo {
	u64 code;
	u64 check;
	u64 epoch;
	u32 since; /* it was first read with this checksum */
	u32 read; /* it was last read */
};

/*
 * Before 3.13 nothing shows that no code object was freed since the last walk, and reading a stack's code objects takes
 * longer than all of the rest. So one that was unchanged for MEMO_SETTLED is read again only after MEMO_TRUSTED: if it
 * is freed after all, stacks of this thread may name it for so long, where another one lies at its address.
 */
#define MEMO_SETTLED 1000
#define MEMO_TRUSTED 100

/*
 * Code objects that a walking thread has read. A storage of its own, because struct python_thread with it would
 * exceed the size limit of a storage.
 */
struct python_known {
	struct python_memo memos[PYTHON_MEMOS];
	struct raw_code raw;
};

/* A thread that walks stacks: what is known of the thread itself, and buffers. */
struct python_thread {
	u64 state; /* its PyThreadState when last searched for */
	u32 process; /* id of the process that the state belongs to */
	/* a walk is in progress; an interrupt or the scheduler may start another one, see struct python_nested */
	u32 busy;
	u32 which; /* the process's CPython that knew the thread last: an index in python_process.at */
	u32 pad;
	struct python_cursor cursor;
	struct python_search search;
	struct python_text sending;
	struct python_stack_key last; /* the stack that was walked last */
	u32 last_id; /* its id, 0: none */
	u32 misses; /* searches that found no thread state */
	u64 walks;
	u64 words[PYTHON_STATE_WORDS]; /* of a thread state */
	u64 frame[PYTHON_FRAME_WORDS];
	u64 code[PYTHON_CODE_WORDS];
	u64 text[8];
	struct python_frame frames[STACK_FRAMES];
};

/*
 * A CPU's buffer for a walk that begins while the thread is in one. Programs on functions can be interrupted and
 * preempted, and then the clock's program or the one at sched_switch walks the same thread. Neither of these two can
 * be preempted.
 */
struct python_nested {
	struct python_thread thread;
	struct python_known known;
};

/*
 * The context of the loop functions. All other state is in the thread's buffer, because all calls together have only
 * 512 bytes of stack.
 */
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
	u64 word = 0;

	/* the kernel clears what it can't read */
	python__read(&word, sizeof(word), from, task);
	return word;
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
 * bpf_loop() with the variant of the function that reads the right task's memory. Whether task is NULL is known at
 * compile time, and the second variant exists only in programs that can read another task's memory.
 */
#ifdef PYTHON_WALK_TASKS
#define PYTHON_LOOP(n, function, context, task) bpf_loop(n, task ? function##_there : function##_here, context, 0)
#else
#define PYTHON_LOOP(n, function, context, task) bpf_loop(n, function##_here, context, 0)
#endif
