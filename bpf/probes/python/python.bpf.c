// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * All probes here are plain uprobes at sites that python.c finds. Each of them runs for something that takes long: a
 * collection, the loading of a module, the creation of a thread. Open events wait in a task storage of their own:
 * imports nest deeper than calls do, and only threads that import need that memory.
 */
#include "python_imports.bpf.h"

/* start 0: no collection is open */
struct python_state {
	struct python_gc gc;
	struct python_thread_run thread;
	/* time at which this thread called the function that starts a thread; 0: it is not in that call */
	u64 starting;
	u32 stack; /* at that call */
	u32 pad;
};

struct {
	TASK_STORAGE(struct python_state);
} python_states SEC(".maps");

static __always_inline struct python_state *own_state(void)
{
	struct python_state *st =
		bpf_task_storage_get(&python_states, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!st)
		loss__count(FAMILY_PYTHON, LOSS_STORAGE, bpf_ktime_get_ns());
	return st;
}

static __always_inline void gc_begin(u64 cookie, s32 generation)
{
	struct python_state *st;
	u32 stack;

	if (!probe__is_selected(cookie))
		return;
	st = own_state();
	if (!st)
		return;
	/* before the clock is read, so that the collection's time does not include the stack walk */
	stack = python__stack_here(STACK_FRAMES);
	st->gc.generation = generation;
	st->gc.collected = st->gc.uncollectable = -1;
	st->gc.stack = stack;
	span__init(&st->gc.span, ID_python_gc, cookie);
}

static __always_inline void gc_end(u64 cookie, s64 collected, s64 uncollectable)
{
	u64 now = bpf_ktime_get_ns();
	struct python_state *st;
	struct python_gc e;

	if (!probe__is_selected(cookie))
		return;
	st = bpf_task_storage_get(&python_states, bpf_get_current_task_btf(), 0, 0);
	/* the collection began before tracing did */
	if (!st || !st->gc.span.start)
		return;
	e = st->gc;
	st->gc.span.start = 0;
	e.span.event.time = now;
	e.collected = collected;
	e.uncollectable = uncollectable;
	emit(&e, sizeof(e));
}

/* gc__start(int generation) */
SITE(python_gc_start, "gc-start")
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	s64 generation = -1;

	usdt_argument(ctx, cookie, &generation);
	gc_begin(cookie, generation);
	return 0;
}

/* gc__done(long collected) */
SITE(python_gc_done, "gc-done")
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	s64 collected = -1;

	usdt_argument(ctx, cookie, &collected);
	gc_end(cookie, collected, -1);
	return 0;
}

/* "start" and "stop" as numbers; the first four characters are enough */
#define WORD_START 0x72617473
#define WORD_STOP  0x706f7473

/*
 * invoke_gc_callback(state, phase, generation, collected, uncollectable), before and after each collection. Compilers
 * may replace or drop the first argument: then the others are one register earlier. Later versions of CPython pass a
 * pointer to the figures instead of the two numbers: then these are not known.
 */
SITE(python_gc_callback, "gc-callback")
{
	u64 cookie = bpf_get_attach_cookie(ctx), a = ARG1(ctx), b = ARG2(ctx), c = ARG3(ctx), d = ARG4(ctx),
	    e = ARG5(ctx);
	u32 word = 0;

	if (bpf_probe_read_user(&word, sizeof(word), (const void *)b) || (word != WORD_START && word != WORD_STOP)) {
		if (bpf_probe_read_user(&word, sizeof(word), (const void *)a))
			return 0;
		e = d;
		d = c;
		c = b;
	}
	if (word == WORD_START)
		gc_begin(cookie, (s32)c);
	else if (word == WORD_STOP)
		gc_end(cookie, d >> 32 ? -1 : (s64)d, d >> 32 ? -1 : (s64)e);
	return 0;
}

/* import__find__load__start(char *module) */
SITE(python_import_start, "import-start")
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	struct python_import *e = import_begin(ctx, cookie);
	s64 name = 0;

	if (!e)
		return 0;
	usdt_argument(ctx, cookie, &name);
	if (!name || bpf_probe_read_user_str(e->module, sizeof(e->module), (const void *)name) < 0)
		loss__count(FAMILY_PYTHON, LOSS_READ, e->span.start);
	return 0;
}

/* The call of the audit hooks ("import", ..., the module's name, ...), with which the import of a module begins. */
SITE(python_import_audit, "import-audit")
{
	u64 cookie = bpf_get_attach_cookie(ctx), third = ARG3(ctx), fourth = ARG4(ctx);
	struct python_import *e = import_begin(ctx, cookie);

	if (e && !read_str(e->module, cookie & PYTHON_NAME_FOURTH ? fourth : third, cookie >> PYTHON_STR_AT & 0xff))
		loss__count(FAMILY_PYTHON, LOSS_READ, e->span.start);
	return 0;
}

/* The end of the import, in the same frame, for both kinds of start. */
SITE(python_import_done, "import-done")
{
	u64 cookie = bpf_get_attach_cookie(ctx), now = bpf_ktime_get_ns(), sp = ctx->sp;
	struct task_struct *task = bpf_get_current_task_btf();
	struct open_import *o;
	struct imports *in;

	if (!probe__is_selected(cookie))
		return 0;
	in = bpf_task_storage_get(&python_imports, task, 0, 0);
	if (!in)
		return 0;
	imports__drop(in, sp - SAME_FRAME, EVENT_RETURN_NOT_SEEN);
	o = import_at(in, task, in->depth - 1, 0);
	if (!o || o->sp > sp + SAME_FRAME)
		return 0;
	in->depth--;
	o->record.span.event.time = now;
	emit(&o->record, sizeof(o->record));
	return 0;
}

/* PyThread_start_new_thread and PyThread_start_joinable_thread create the thread. */
SITE(python_thread_start, "thread-start")
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	struct python_state *st;

	if (!probe__is_selected(cookie))
		return 0;
	st = own_state();
	if (!st)
		return 0;
	st->starting = bpf_ktime_get_ns();
	st->stack = python__stack_here(STACK_FRAMES);
	return 0;
}

/* A thread that a library creates later than this, within one of these calls, does not count as Python's. */
#define START_MAX_NS 1000000000ULL

SEC("tp_btf/sched_process_fork")
int BPF_PROG(python_forked, struct task_struct *parent, struct task_struct *child)
{
	struct python_state *own = bpf_task_storage_get(&python_states, parent, 0, 0), *st;
	u64 now, started;

	if (!own || !own->starting || child->tgid != parent->tgid)
		return 0;
	now = bpf_ktime_get_ns();
	started = own->starting;
	own->starting = 0;
	if (now - started > START_MAX_NS)
		return 0;
	st = bpf_task_storage_get(&python_states, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!st) {
		loss__count(FAMILY_PYTHON, LOSS_STORAGE, now);
		return 0;
	}
	st->thread.span.event.pid = child->tgid;
	st->thread.span.event.tid = child->pid;
	st->thread.span.event.id = ID_python_thread_run;
	st->thread.span.start = now;
	st->thread.starter = parent->pid;
	st->thread.stack = own->stack;
	return 0;
}

/* Emits what is open in a thread that ends or executes another program: it will not complete. */
static __always_inline void leave(struct task_struct *task, bool ended)
{
	struct python_state *st = bpf_task_storage_get(&python_states, task, 0, 0);
	struct imports *in = bpf_task_storage_get(&python_imports, task, 0, 0);

	if (in)
		imports__drop(in, ~0ULL, EVENT_OPEN);
	if (!st)
		return;
	if (st->gc.span.start) {
		st->gc.span.event.time = bpf_ktime_get_ns();
		st->gc.span.event.flags = EVENT_OPEN;
		emit(&st->gc, sizeof(st->gc));
		st->gc.span.start = 0;
	}
	if (ended && st->thread.span.start) {
		st->thread.span.event.time = bpf_ktime_get_ns();
		emit(&st->thread, sizeof(st->thread));
		st->thread.span.start = 0;
	}
	st->starting = 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(python_exited, struct task_struct *task)
{
	leave(task, true);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(python_execed, struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)
{
	leave(task, false);
	return 0;
}

/* Writes what is open when tracing stops. */
SEC("iter/task")
int python_open(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct seq_file *seq = ctx->meta->seq;
	struct python_state *st;
	struct imports *in;
	u64 now = bpf_ktime_get_ns();

	if (!task)
		return 0;
	in = bpf_task_storage_get(&python_imports, task, 0, 0);
	for (u32 i = 0; in && i < IMPORT_DEPTH && i < in->depth; i++) {
		struct open_import *o = import_at(in, task, i, 0);
		struct python_import *e;

		if (!o)
			break;
		e = &o->record;
		e->span.event.time = now;
		e->span.event.flags |= EVENT_OPEN;
		iter__write(seq, e, sizeof(*e));
	}
	st = bpf_task_storage_get(&python_states, task, 0, 0);
	if (st && st->gc.span.start) {
		st->gc.span.event.time = now;
		st->gc.span.event.flags = EVENT_OPEN;
		iter__write(seq, &st->gc, sizeof(st->gc));
	}
	if (st && st->thread.span.start) {
		st->thread.span.event.time = now;
		st->thread.span.event.flags = EVENT_OPEN;
		iter__write(seq, &st->thread, sizeof(st->thread));
	}
	return 0;
}
