// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A call is one record, written at its return; until then it is in the task storage of its thread. A thread is
 * followed if it has such storage, which is created with the thread or by syscall_begin, never at a call, so that the
 * calls of other threads cost one load. docs/syscall.md has the special cases and the costs.
 */
#include "core/file.bpf.h"
#include "syscall.h"
#include "core/syscall_traits.bpf.h"

OPTION(syscall, all, "every process, not only those with a runtime and busy native ones");
OPTION_NUMBER(syscall, threshold, "ns", "shorter calls are only counted, without an event for each");

#define PATH_ROOM 192

/* A thread that is followed, in task storage. */
struct syscall_thread {
	bool is_followed;
	bool open; /* it is in the call below */
	bool unseen; /* it existed before it was followed, and may have been in a call whose entry was not recorded */
	u16 traits;
	u32 path_len;
	u32 selected; /* see thread__followed() */
	u64 switches; /* number of voluntary switches at the entry */
	u64 since; /* when the thread was first followed */
	struct file_cache file; /* the file used last */
	/* a struct syscall with its tail */
	u8 record[sizeof(struct syscall) + PATH_ROOM] __attribute__((aligned(8)));
};

struct {
	TASK_STORAGE(struct syscall_thread);
} syscall_threads SEC(".maps");

struct short_key {
	u32 pid;
	u32 nr;
};

struct short_calls {
	u64 count, total, errors;
	u32 empty_reads; /* successive reads by the worker that found no new calls */
	u32 pad;
};

/* Sums of calls below the threshold since the worker last read them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct short_key);
	__type(value, struct short_calls);
} syscall_shorts SEC(".maps");

/* When syscall_short_calls last ran. */
u64 syscall_shorts_read = 0;

static __always_inline struct syscall_thread *thread_of(struct task_struct *task)
{
	return task__stored(&syscall_threads, task);
}

static __always_inline struct syscall_thread *new_thread(struct task_struct *task)
{
	struct syscall_thread *t = bpf_task_storage_get(&syscall_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!t)
		loss__count(EVENT_FAMILY(ID_syscall), LOSS_STORAGE, bpf_ktime_get_ns());
	return t;
}

static __always_inline struct syscall *call_of(struct syscall_thread *t)
{
	return (struct syscall *)t->record;
}

static __always_inline void read_args(struct syscall *c, u16 traits, struct pt_regs *regs)
{
	u32 n = ARGS(traits);

	if (c->nr & SYSCALL_32) {
		c->arg0 = n > 0 ? (u32)regs->bx : 0;
		c->arg1 = n > 1 ? (u32)regs->cx : 0;
		c->arg2 = n > 2 ? (u32)regs->dx : 0;
		c->arg3 = n > 3 ? (u32)regs->si : 0;
		c->arg4 = n > 4 ? (u32)regs->di : 0;
		c->arg5 = n > 5 ? (u32)regs->bp : 0;
		return;
	}
	c->arg0 = n > 0 ? regs->di : 0;
	c->arg1 = n > 1 ? regs->si : 0;
	c->arg2 = n > 2 ? regs->dx : 0;
	c->arg3 = n > 3 ? regs->r10 : 0;
	c->arg4 = n > 4 ? regs->r8 : 0;
	c->arg5 = n > 5 ? regs->r9 : 0;
}

/* The caller's text may not be in memory yet: the program at the return tries again, after the kernel has read it. */
static __always_inline void read_path(struct syscall_thread *t)
{
	struct syscall *c = call_of(t);
	u64 address = t->traits & HAS_PATH ? c->arg0 : c->arg1;
	long n;

	if (no_args)
		return;
	n = bpf_probe_read_user_str(t->record + __builtin_offsetof(struct syscall, path), PATH_ROOM,
				    (const void *)address);
	t->path_len = n > 0 && n <= PATH_ROOM ? n - 1 : 0;
}

static __always_inline void open_call(struct syscall_thread *t, struct task_struct *task, struct pt_regs *regs, u32 nr,
				      u64 now)
{
	struct syscall *c = call_of(t);

	__builtin_memset(c, 0, sizeof(struct syscall));
	c->call.span.event.pid = task->tgid;
	c->call.span.event.tid = task->pid;
	c->call.span.event.id = ID_syscall;
	c->call.span.start = now;
	c->nr = nr;
	t->traits = traits_of(nr);
	t->path_len = 0;
	t->switches = task->nvcsw;
	read_args(c, t->traits, regs);
	t->open = true;
}

/*
 * Is this a system call that a probe made? The kernel implements the return (6.11) or the entry (6.18) of a probed
 * function by a system call. The program did not make it, so it counts as cost of probes. At its exit orig_ax is -1.
 */
static __always_inline bool is_of_probe(u32 nr)
{
	return nr == SYS_uretprobe || nr == SYS_uprobe;
}

/* Emits a call that has returned, or that will never return. */
static __noinline int send(struct syscall_thread *t)
{
	u32 len;

	if (!t)
		return 0;
	t->open = false;
	len = t->path_len;
	barrier_var(len);
	if (len >= PATH_ROOM)
		len = 0;
	emit(t->record, __builtin_offsetof(struct syscall, path) + len);
	return 0;
}

static __noinline int count_short(struct syscall_thread *t, u64 ns)
{
	struct short_calls one = {}, *s;
	struct short_key key;
	struct syscall *c;

	if (!t)
		return 0;
	c = call_of(t);
	key.pid = c->call.span.event.pid;
	key.nr = c->nr;
	t->open = false;
	s = bpf_map_lookup_elem(&syscall_shorts, &key);
	if (!s) {
		bpf_map_update_elem(&syscall_shorts, &key, &one, BPF_NOEXIST);
		s = bpf_map_lookup_elem(&syscall_shorts, &key);
	}
	if (!s) {
		loss__count(EVENT_FAMILY(ID_syscall), LOSS_MAP_FULL, bpf_ktime_get_ns());
		return 0;
	}
	__sync_fetch_and_add(&s->count, 1);
	__sync_fetch_and_add(&s->total, ns);
	if (c->call.ret < 0 && c->call.ret >= -4095)
		__sync_fetch_and_add(&s->errors, 1);
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(syscall_enter, struct pt_regs *regs, long id)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct syscall_thread *t = thread_of(task);
	struct event *e;
	struct syscall *c;
	u32 nr;

	if (!t || !t->is_followed)
		return 0;
	t->unseen = false;
	if (!thread__followed(task, &t->selected))
		return 0;
	nr = encode(task, id);
	c = call_of(t);
	e = &c->call.span.event;
	if (t->open && !(e->flags & EVENT_STARTED_BEFORE)) {
		/* the kernel skipped the program at the return */
		e->time = bpf_ktime_get_ns();
		e->flags |= EVENT_RETURN_NOT_SEEN;
		loss__count(EVENT_FAMILY(ID_syscall), LOSS_RETURN, e->time);
		send(t);
	}
	if (is_of_probe(nr)) {
		t->open = false;
		return 0;
	}
	open_call(t, task, regs, nr, 0);
	if (t->traits & (HAS_FD | HAS_FD5))
		c->file = file__of_fd(task, (u32)(t->traits & HAS_FD ? c->arg0 : c->arg4), &t->file);
	if (t->traits & (HAS_PATH | HAS_PATH1))
		read_path(t);
	c->call.span.start = bpf_ktime_get_ns();
	return 0;
}

/* A child begins by returning from the call that created it. */
static __always_inline bool makes_children(u32 nr)
{
	switch (nr) {
	case SYS_clone:
	case SYS_clone3:
	case SYS_fork:
	case SYS_vfork:
	case SYS32_fork:
	case SYS32_vfork:
	case SYS32_clone:
	case SYS32_clone3:
		return true;
	}
	return false;
}

/*
 * Handles a return whose entry was not seen. The call began before the thread was followed, or the entry's program
 * never ran, because seccomp and debuggers refuse calls before the tracepoint of the entry.
 */
static __always_inline bool adopt(struct syscall_thread *t, struct task_struct *task, struct pt_regs *regs, long ret,
				  u64 now)
{
	u32 nr = encode(task, regs->orig_ax);

	if ((s32)regs->orig_ax < 0 || is_of_probe(nr) || (!ret && makes_children(nr)))
		return false;
	open_call(t, task, regs, nr, t->unseen ? t->since : now);
	call_of(t)->call.span.event.flags = t->unseen ? EVENT_STARTED_BEFORE : EVENT_NO_DURATION;
	return true;
}

static __always_inline void finish(struct syscall_thread *t, struct task_struct *task, long ret, u64 now)
{
	struct syscall *c = call_of(t);
	bool is_new;

	c->call.span.event.time = now;
	c->call.ret = c->nr & SYSCALL_32 ? (s32)ret : ret;
	c->sleeps = task->nvcsw - t->switches;
	if (c->call.ret > 0 && t->traits & HAS_BYTES)
		c->bytes = c->call.ret;
	is_new = !c->file && c->call.ret >= 0 && t->traits & NEW_FD;
	if (is_new || t->traits & HAS_FDX)
		c->file = file__of_fd(task, is_new ? c->call.ret : c->arg0, &t->file);
	if (!t->path_len && t->traits & (HAS_PATH | HAS_PATH1))
		read_path(t);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(syscall_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 now = bpf_ktime_get_ns(), ns;
	struct syscall_thread *t = thread_of(task);
	struct syscall *c;

	if (!t || (!t->is_followed && !t->open))
		return 0;
	if (!t->open && (!thread__followed(task, &t->selected) || !adopt(t, task, regs, ret, now))) {
		t->unseen = false;
		return 0;
	}
	t->unseen = false;
	c = call_of(t);
	ns = now - c->call.span.start;
	if (ns < option_syscall_threshold && !c->call.span.event.flags) {
		c->call.ret = c->nr & SYSCALL_32 ? (s32)ret : ret;
		count_short(t, ns);
		return 0;
	}
	finish(t, task, ret, now);
	send(t);
	return 0;
}

/* Decides by the parent, because the child's process may not be among the followed ones yet. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(syscall_forked, struct task_struct *parent, struct task_struct *child)
{
	struct syscall_thread *t = task__followed(parent, option_syscall_all) ? new_thread(child) : NULL;

	if (t)
		t->is_followed = true;
	return 0;
}

/* The calls that a thread leaves open will never return; the most common one is exit. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(syscall_thread_exit, struct task_struct *task)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct syscall_thread *t = thread_of(me);
	struct syscall *c;

	if (!t || !t->open)
		return 0;
	t->is_followed = false;
	c = call_of(t);
	c->call.span.event.time = bpf_ktime_get_ns();
	c->call.span.event.flags |= EVENT_OPEN;
	c->sleeps = me->nvcsw - t->switches;
	send(t);
	return 0;
}

/* The new program may have no runtime; the exec itself is still recorded. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(syscall_execed, struct task_struct *task)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct syscall_thread *t = thread_of(me);

	if (t && !task__followed(me, option_syscall_all))
		t->is_followed = false;
	return 0;
}

/*
 * Creates the storage of threads that exist already. Run when tracing begins, and when a runtime is found in a process.
 */
SEC("?iter/task")
int syscall_begin(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct syscall_thread *t;
	struct pt_regs *regs;

	if (!task || task->flags & (PF_EXITING | PF_KTHREAD) || !task__passed_on(task, option_syscall_all))
		return 0;
	t = new_thread(task);
	if (!t || t->is_followed)
		return 0;
	t->is_followed = true;
	if (!task__followed(task, option_syscall_all))
		return 0;
	t->since = bpf_ktime_get_ns();
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	/* a thread that sleeps in a call may never return from it; a running thread may be anywhere */
	if (regs && task->__state && (s32)regs->orig_ax >= 0) {
		open_call(t, task, regs, encode(task, regs->orig_ax), t->since);
		call_of(t)->call.span.event.flags = EVENT_STARTED_BEFORE;
		if (t->traits & (HAS_FD | HAS_FDX))
			call_of(t)->file = file__of_fd(task, (u32)call_of(t)->arg0, &t->file);
	}
	t->unseen = !t->open;
	return 0;
}

struct short_context {
	struct seq_file *seq;
	u64 now;
};

#define IDLE_MAX 2

static long write_short(struct bpf_map *map, struct short_key *key, struct short_calls *s, struct short_context *c)
{
	struct syscall_short r = {};
	u64 count = s->count;

	/* the process may have ended: nothing else deletes its sums */
	if (!count) {
		if (++s->empty_reads < IDLE_MAX)
			return 0;
		bpf_map_delete_elem(&syscall_shorts, key);
		/* a thread may have counted between the two operations */
		count = *(volatile u64 *)&s->count;
		if (!count)
			return 0;
	}
	s->empty_reads = 0;
	r.event.time = c->now;
	r.event.pid = key->pid;
	r.event.tid = key->pid;
	r.event.id = ID_syscall_short;
	r.since = syscall_shorts_read;
	r.nr = key->nr;
	/* calls that are counted meanwhile remain for the next read */
	r.count = count;
	r.total = s->total;
	r.errors = s->errors;
	__sync_fetch_and_add(&s->count, -r.count);
	__sync_fetch_and_add(&s->total, -r.total);
	__sync_fetch_and_add(&s->errors, -r.errors);
	iter__write(c->seq, &r, sizeof(r));
	return 0;
}

/* Runs once a second, and at the end. */
SEC("iter/task")
int syscall_short_calls(struct bpf_iter__task *ctx)
{
	struct short_context c = { .seq = ctx->meta->seq, .now = bpf_ktime_get_ns() };

	if (ctx->meta->seq_num || !ctx->task)
		return 0;
	if (option_syscall_threshold && syscall_shorts_read)
		bpf_for_each_map_elem(&syscall_shorts, write_short, &c, 0);
	syscall_shorts_read = c.now;
	return 0;
}

SEC("iter/task")
int syscall_open_calls(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct syscall_thread *t;
	struct syscall *c;
	u32 size;

	if (!task)
		return 0;
	t = thread_of(task);
	if (!t || !t->open)
		return 0;
	c = call_of(t);
	c->call.span.event.time = bpf_ktime_get_ns();
	c->call.span.event.flags |= EVENT_OPEN;
	c->sleeps = task->nvcsw - t->switches;
	size = t->path_len;
	barrier_var(size);
	if (size >= PATH_ROOM)
		size = 0;
	size += __builtin_offsetof(struct syscall, path);
	iter__write(ctx->meta->seq, c, size);
	return 0;
}
