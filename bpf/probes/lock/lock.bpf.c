// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A wait on a futex is one record, written when it ends; a thread is followed as in syscall.bpf.c. sched_waking, which runs
 * in the waker's context, finds who released the lock: a waker is a thread that wakes the waiter by a futex call on the
 * address it waits on, or by its own end (pthread_join).
 */
#include "core/sonde.bpf.h"
#include "lock.h"
#include "syscall_nr.h"

OPTION(lock, all, "every process, not only those with a runtime");

#define TS_COMPAT 2
#define EBUSY	  16

/* include/uapi/linux/futex.h */
#define FUTEX_OP	      127
#define FUTEX_WAIT	      0
#define FUTEX_WAKE	      1
#define FUTEX_REQUEUE	      3
#define FUTEX_CMP_REQUEUE     4
#define FUTEX_WAKE_OP	      5
#define FUTEX_LOCK_PI	      6
#define FUTEX_UNLOCK_PI	      7
#define FUTEX_WAIT_BITSET     9
#define FUTEX_WAKE_BITSET     10
#define FUTEX_WAIT_REQUEUE_PI 11
#define FUTEX_CMP_REQUEUE_PI  12
#define FUTEX_LOCK_PI2	      13
#define FUTEX_WAITERS	      0x80000000
#define FUTEX_TID_MASK	      0x3fffffff

/* the same number in every ABI; newer than many headers */
#define NR_FUTEX_WAITV	 449
#define NR_FUTEX_WAKE	 454
#define NR_FUTEX_WAIT	 455
#define NR_FUTEX_REQUEUE 456

struct lock_thread {
	bool on;
	bool waiting;
	bool released; /* has let go of the lock it waited for last */
	u32 number; /* of its last episode */
	u32 selected; /* see thread__followed() */
	u64 last; /* the lock */
	u64 second; /* where a wait may be moved to: FUTEX_WAIT_REQUEUE_PI */
	u64 waiters; /* of futex_waitv() */
	struct lock_wait wait;
};

struct {
	TASK_STORAGE(struct lock_thread);
} lock_threads SEC(".maps");

/* A futex call, decoded. */
struct futex_call {
	u64 word, word2;
	u32 op; /* FUTEX_...; of the newer calls, the one that does the same */
	u32 value;
};

static __always_inline struct lock_thread *thread_of(struct task_struct *task)
{
	return task__stored(&lock_threads, task);
}

static __always_inline bool decode_old(struct futex_call *f, u64 word, u32 op, u32 value, u64 word2)
{
	f->word = word;
	f->word2 = word2;
	f->op = op & FUTEX_OP;
	f->value = value;
	return true;
}

/* Is it a call on futexes, and which? */
static __always_inline bool decode(struct futex_call *f, struct pt_regs *regs, u32 nr, bool compat)
{
	bool old = compat ? nr == SYS32_futex || nr == SYS32_futex_time64 : nr == SYS_futex;

	if (old && compat)
		return decode_old(f, (u32)regs->bx, regs->cx, regs->dx, (u32)regs->di);
	if (old)
		return decode_old(f, regs->di, regs->si, regs->dx, regs->r8);
	if (nr != NR_FUTEX_WAITV && (nr < NR_FUTEX_WAKE || nr > NR_FUTEX_REQUEUE))
		return false;
	f->word = compat ? (u32)regs->bx : regs->di;
	f->word2 = 0;
	f->value = compat ? regs->cx : regs->si;
	f->op = nr == NR_FUTEX_WAKE ? FUTEX_WAKE : nr == NR_FUTEX_WAIT ? FUTEX_WAIT : FUTEX_REQUEUE;
	if (nr == NR_FUTEX_WAITV)
		f->op = FUTEX_OP; /* none: word is an array of them */
	return true;
}

static __always_inline bool is_compat(struct task_struct *task)
{
	return task->thread_info.status & TS_COMPAT;
}

/* struct futex_waitv: u64 val, u64 uaddr, u32 flags, u32 reserved */
static __always_inline u64 word_of_waiter(u64 waiters, u32 i)
{
	u64 word = 0;

	bpf_probe_read_user(&word, sizeof(word), (const void *)(waiters + i * 24 + 8));
	return word;
}

/*
 * Who has the lock? Priority inheriting and robust ones hold the thread's number
 * themselves. A glibc mutex waits for the word to be no longer 2 and has its
 * owner eight bytes on; what else waits for 2 has something else there, of which
 * what can't be a thread is left out.
 */
static __always_inline u32 owner_of(u64 word, u32 op, u32 value)
{
	u32 owner = 0;

	if (op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2) {
		bpf_probe_read_user(&owner, sizeof(owner), (const void *)word);
		return owner & FUTEX_TID_MASK;
	}
	if (op != FUTEX_WAIT && op != FUTEX_WAIT_BITSET)
		return 0;
	if (value & FUTEX_WAITERS)
		owner = value & FUTEX_TID_MASK;
	else if (value == 2)
		bpf_probe_read_user(&owner, sizeof(owner), (const void *)(word + 8));
	/* PID_MAX_LIMIT */
	return owner > 1 && owner <= 4194304 ? owner : 0;
}

/* The mapping of the library that waits: call sites are outside of it. Empty for a static program. By process. */
struct lock_range {
	u64 start, end;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct lock_range);
} lock_libraries SEC(".maps");

static long on_vma(struct task_struct *task, struct vm_area_struct *vma, struct lock_range *r)
{
	struct file *file = vma->vm_file;

	/* a lock function linked into the program has no range of its own */
	if (!file || file == BPF_CORE_READ(task, mm, exe_file))
		return 0;
	r->start = vma->vm_start;
	r->end = vma->vm_end;
	return 0;
}

static __always_inline struct lock_range library_of(struct task_struct *task, u64 ip)
{
	u32 tgid = task->tgid;
	struct lock_range *known = bpf_map_lookup_elem(&lock_libraries, &tgid), r = {};

	if (known)
		return *known;
	/* if the mappings are being changed just now, the next wait will do */
	if (!bpf_find_vma(task, ip, on_vma, &r, 0))
		bpf_map_update_elem(&lock_libraries, &tgid, &r, BPF_ANY);
	return r;
}

/* Does a call end in front of this address? x86: e8 rel32, or ff /2 with its forms of operand. */
static __always_inline bool follows_call(u64 address)
{
	u8 b[8];

	if (bpf_probe_read_user(b, sizeof(b), (const void *)(address - 8)))
		return false;
	if (b[3] == 0xe8)
		return true;
	/* call *reg, *(reg); *disp8(reg); *disp32(reg), *disp32(%rip); *disp32(sib) */
	return (b[6] == 0xff && (b[7] & 0x38) == 0x10) || (b[5] == 0xff && (b[6] & 0x38) == 0x10) ||
	       (b[2] == 0xff && (b[3] & 0x38) == 0x10) || (b[1] == 0xff && (b[2] & 0x38) == 0x10);
}

#define VM_EXEC 4

static long on_code(struct task_struct *task, struct vm_area_struct *vma, bool *code)
{
	*code = vma->vm_flags & VM_EXEC;
	return 0;
}

/* Is code mapped there? While the mappings are being changed the answer is yes. */
static __always_inline bool is_code(u64 address)
{
	bool code = false;
	long err = bpf_find_vma(bpf_get_current_task_btf(), address, on_code, &code, 0);

	return err ? err == -EBUSY : code;
}

/* Is what the slot holds, a place in a table of imported functions, in the library? */
static __always_inline bool slot_is_in(u64 slot, const struct lock_range *library)
{
	u64 function = 0;

	bpf_probe_read_user(&function, sizeof(function), (const void *)slot);
	return function >= library->start && function < library->end;
}

/*
 * Does the call in front of this address go into the library? Through its own
 * module's table (ff 15), or to a stub (e8) that jumps through it (ff 25, behind
 * an endbr64 and a bnd where there are).
 */
static __always_inline bool calls_library(u64 address, const struct lock_range *library)
{
	struct {
		u8 code[4];
		s32 distance;
	} call;
	struct {
		u8 code[2];
		s32 distance;
	} __attribute__((packed)) jump;
	u64 stub;
	u32 word;

	if (bpf_probe_read_user(&call, sizeof(call), (const void *)(address - 8)))
		return 0;
	if (call.code[2] == 0xff && call.code[3] == 0x15)
		return slot_is_in(address + call.distance, library);
	if (call.code[3] != 0xe8)
		return 0;
	stub = address + call.distance;
	if (bpf_probe_read_user(&word, sizeof(word), (const void *)stub))
		return 0;
	if (word == 0xfa1e0ff3)
		stub += 4;
	if (bpf_probe_read_user(&word, sizeof(word), (const void *)stub))
		return 0;
	if ((word & 0xff) == 0xf2)
		stub++;
	if (bpf_probe_read_user(&jump, sizeof(jump), (const void *)stub) || jump.code[0] != 0xff ||
	    jump.code[1] != 0x25)
		return 0;
	return slot_is_in(stub + sizeof(jump) + jump.distance, library);
}

#define STACK_WORDS 32 /* looked at in one go */
#define STACK_SPAN  (64 << 20)

struct site_search {
	struct lock_range library;
	u64 sp;
	u64 site, at; /* where on the stack it is */
	bool sure;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct site_search);
} lock_searches SEC(".maps");

static __always_inline struct site_search *site_search(void)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&lock_searches, &key);
}

/*
 * Is the value `word`, which lies at `at` on the stack, the call site? Not static, so that the verifier checks the function
 * once, and not for each value in each program that calls it. True: the search is over.
 */
__noinline int lock_try_word(u64 word, u64 at)
{
	struct site_search *s = site_search();

	if (!s || word < 65536 || word - (s->sp - STACK_SPAN) < 2 * STACK_SPAN || word >> 47 ||
	    (word >= s->library.start && word < s->library.end) || !follows_call(word))
		return false;
	s->sure = calls_library(word, &s->library);
	if (!s->sure && (s->site || !is_code(word)))
		return false;
	s->site = word;
	s->at = at;
	/* a program without such a library has no surer one */
	return s->sure || !s->library.end;
}

/* Looks for the call site from sp up. */
static __noinline int search(u64 sp)
{
	u64 words[STACK_WORDS];

	if (bpf_probe_read_user(words, sizeof(words), (const void *)sp))
		return true;
	for (u32 i = 0; i < STACK_WORDS; i++)
		if (lock_try_word(words[i], sp + i * 8))
			return true;
	return false;
}

/*
 * The waiting library's own frames have no frame pointers, but they are small: the
 * first word on the stack behind a call into it is the call site, or where there is
 * none the first one that is a return address at all. Words of earlier calls may lie
 * between. Most of the library's functions leave the frame pointer alone: if it lies
 * above that word, the frames from there on are the callers'.
 */
static __noinline int find_site(struct lock_wait *w, struct pt_regs *regs, struct lock_range *library)
{
	struct site_search *s = site_search();
	u64 frame[2], at;

	if (!w || !regs || !library || !s)
		return 0;
	s->library = *library;
	s->sp = BPF_CORE_READ(regs, sp);
	s->site = 0;
	s->at = 0;
	if (!search(s->sp))
		search(s->sp + STACK_WORDS * 8);
	w->site = s->site;
	at = s->at;
	frame[0] = BPF_CORE_READ(regs, bp);
	if (!at || frame[0] <= at || frame[0] - at > STACK_SPAN || frame[0] & 7 ||
	    bpf_probe_read_user(frame, sizeof(frame), (const void *)frame[0]) || !follows_call(frame[1]))
		return 0;
	w->caller = frame[1];
	if (frame[0] & 7 || frame[0] <= at || frame[0] - at > STACK_SPAN ||
	    bpf_probe_read_user(frame, sizeof(frame), (const void *)frame[0]) || !follows_call(frame[1]))
		return 0;
	w->caller2 = frame[1];
	return 0;
}

static __always_inline void wait_begins(struct lock_thread *t, struct task_struct *task, struct pt_regs *regs,
					const struct futex_call *f)
{
	struct lock_wait *w = &t->wait;
	struct lock_range library;

	__builtin_memset(w, 0, sizeof(*w));
	event__init(&w->span.event, ID_lock_wait, 0, 0);
	w->lock = f->word;
	w->value = f->value;
	w->op = f->op == FUTEX_OP				  ? LOCK_WAITV :
		f->op == FUTEX_WAIT_REQUEUE_PI			  ? LOCK_REQUEUE :
		f->op == FUTEX_LOCK_PI || f->op == FUTEX_LOCK_PI2 ? LOCK_PI :
								    LOCK_WAIT;
	t->waiters = 0;
	if (w->op == LOCK_WAITV) {
		t->waiters = f->word;
		w->lock = word_of_waiter(f->word, 0);
		w->value = 0;
	}
	t->second = w->op == LOCK_REQUEUE ? f->word2 : 0;
	w->owner = owner_of(f->word, f->op, f->value);
	if (w->lock != t->last || t->released || !t->number)
		t->number++;
	t->last = w->lock;
	t->released = false;
	w->episode = t->number;
	/* 32-bit code has other stacks */
	if (!is_compat(task)) {
		library = library_of(task, regs->ip);
		find_site(w, regs, &library);
	}
	w->span.start = bpf_ktime_get_ns();
	t->waiting = true;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(lock_enter, struct pt_regs *regs, long id)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct futex_call f;
	struct lock_thread *t;

	if (!task->bpf_storage || !decode(&f, regs, id, is_compat(task)))
		return 0;
	t = bpf_task_storage_get(&lock_threads, task, 0, 0);
	if (!t || !t->on || !thread__followed(task, &t->selected))
		return 0;
	switch (f.op) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
	case FUTEX_WAIT_REQUEUE_PI:
	case FUTEX_OP:
		wait_begins(t, task, regs, &f);
		break;
	default:
		if (f.word == t->last)
			t->released = true;
	}
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(lock_exit, struct pt_regs *regs, long ret)
{
	u64 now = bpf_ktime_get_ns();
	struct lock_thread *t = thread_of(bpf_get_current_task_btf());
	struct lock_wait *w;

	if (!t || !t->waiting)
		return 0;
	t->waiting = false;
	w = &t->wait;
	w->span.event.time = now;
	w->result = ret < 0 ? ret : 0;
	if (t->waiters && ret > 0)
		w->lock = word_of_waiter(t->waiters, ret);
	if (w->result && w->waker_tid) {
		/* who woke it then was interrupted by what did */
		w->waker_pid = 0;
		w->waker_tid = 0;
		w->woken = 0;
	}
	emit(w, sizeof(*w));
	return 0;
}

/* Does the current thread wake those that wait on this word, by a futex call or its end? */
static __always_inline bool lets_go(struct task_struct *me, const struct lock_thread *t)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(me);
	struct futex_call f;

	if (me->flags & PF_KTHREAD)
		return false;
	if (me->flags & PF_EXITING)
		return true;
	if (!decode(&f, regs, regs->orig_ax, is_compat(me)) || f.op == FUTEX_OP)
		return false;
	if (f.op == FUTEX_WAIT || f.op == FUTEX_WAIT_BITSET || f.op == FUTEX_WAIT_REQUEUE_PI)
		return false;
	return t->waiters || f.word == t->wait.lock || f.word2 == t->wait.lock ||
	       (t->second && (f.word == t->second || f.word2 == t->second));
}

SEC("tp_btf/sched_waking")
int BPF_PROG(lock_waking, struct task_struct *task)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct lock_thread *t = thread_of(task);

	if (!t || !t->waiting || !lets_go(me, t))
		return 0;
	t->wait.woken = bpf_ktime_get_ns();
	t->wait.waker_pid = me->tgid;
	t->wait.waker_tid = me->pid;
	return 0;
}

static __always_inline struct lock_thread *new_thread(struct task_struct *task)
{
	struct lock_thread *t = bpf_task_storage_get(&lock_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!t)
		loss__count(EVENT_FAMILY(ID_lock_wait), LOSS_STORAGE, bpf_ktime_get_ns());
	return t;
}

/* The child's process may not be in the set yet. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(lock_forked, struct task_struct *parent, struct task_struct *child)
{
	struct lock_thread *t = task__followed(parent, option_lock_all) ? new_thread(child) : NULL;

	if (t)
		t->on = true;
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(lock_thread_exit, struct task_struct *task)
{
	struct lock_thread *t = thread_of(bpf_get_current_task_btf());
	u32 tgid = task->tgid;

	if (!t)
		return 0;
	t->on = false;
	if (!task->signal->live.counter)
		bpf_map_delete_elem(&lock_libraries, &tgid);
	if (!t->waiting)
		return 0;
	t->waiting = false;
	t->wait.span.event.time = bpf_ktime_get_ns();
	t->wait.span.event.flags |= EVENT_OPEN;
	emit(&t->wait, sizeof(t->wait));
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(lock_execed, struct task_struct *task)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct lock_thread *t = thread_of(me);
	u32 tgid = me->tgid;

	if (!t)
		return 0;
	bpf_map_delete_elem(&lock_libraries, &tgid);
	t->last = 0;
	if (!task__followed(me, option_lock_all))
		t->on = false;
	return 0;
}

/* Threads that exist already: run when tracing begins, and when a process becomes a runtime. */
SEC("?iter/task")
int lock_begin(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct futex_call f;
	struct lock_thread *t;
	struct pt_regs *regs;
	struct lock_wait *w;

	if (!task || task->flags & (PF_EXITING | PF_KTHREAD) || !task__introduced(task, option_lock_all))
		return 0;
	t = new_thread(task);
	if (!t || t->on)
		return 0;
	t->on = true;
	if (!task__followed(task, option_lock_all))
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	if (!regs || !task->__state || (s32)regs->orig_ax < 0 || !decode(&f, regs, regs->orig_ax, is_compat(task)))
		return 0;
	if (f.op != FUTEX_WAIT && f.op != FUTEX_WAIT_BITSET && f.op != FUTEX_LOCK_PI && f.op != FUTEX_LOCK_PI2)
		return 0;
	w = &t->wait;
	w->span.event.pid = task->tgid;
	w->span.event.tid = task->pid;
	w->span.event.id = ID_lock_wait;
	w->span.event.flags = EVENT_STARTED_BEFORE;
	w->lock = f.word;
	w->value = f.value;
	w->op = f.op == FUTEX_LOCK_PI || f.op == FUTEX_LOCK_PI2 ? LOCK_PI : LOCK_WAIT;
	/* robust: the word's value has it; other words can't be read from here */
	if (w->op == LOCK_WAIT && f.value & FUTEX_WAITERS)
		w->owner = f.value & FUTEX_TID_MASK;
	w->episode = ++t->number;
	t->last = f.word;
	w->span.start = bpf_ktime_get_ns();
	t->waiting = true;
	return 0;
}

SEC("iter/task")
int lock_open_waits(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct lock_thread *t;
	struct lock_wait w;

	if (!task)
		return 0;
	t = thread_of(task);
	if (!t || !t->waiting)
		return 0;
	w = t->wait;
	w.span.event.time = bpf_ktime_get_ns();
	w.span.event.flags |= EVENT_OPEN;
	iter__write(ctx->meta->seq, &w, sizeof(w));
	return 0;
}
