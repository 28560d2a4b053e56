/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the probes of a family are written with. A span of a library call is
 *
 *	SPAN(cuda_copy_1d, "libcudart.so:cudaMemcpy,cudaMemcpyAsync", cuda_copy)
 *	{
 *		e->bytes = ARG3(ctx);
 *	}
 *
 * The body runs at the call's entry and fills the record `e`, which is zero except for its header. The record then
 * waits in the thread's open-call stack and is emitted at the return: one record per call. SPAN_EXIT adds a function
 * that runs at the return, for results that the call returns through pointers; SPAN_OUT(e) saves a number for it.
 * SPAN_IF and SPAN_EXIT_IF are loaded only with an option (`--cuda=all`). SPAN__PROGRAM is the general form: with it
 * a family leaves out calls that are made within other calls (cudadrv), and records stacks (at_call.bpf.h).
 *
 * A program is one kernel link per library that it probes, and each link costs time to detach. So one program serves
 * several functions, also with different arguments: a semicolon in the list starts a new group, and the body gets the
 * number of the group, from 0.
 *
 *	SPAN(cuda_sync, "libcudart.so:cudaDeviceSynchronize;cudaStreamSynchronize", cuda_sync)
 *	{
 *		if (group == 1)
 *			e->stream = ARG1(ctx);
 *	}
 *
 * A function whose return address must not be changed (in C++ and libc: code that may be unwound) is a PLACED call,
 * with the same body: the worker finds the ends of the function in its code and puts plain uprobes there
 * (docs/placement.md).
 *
 * Other probes are ENTRY (a uprobe on the entry only), SITE (a uprobe that the family's host code places), and
 * libbpf's own sections (tp_btf/...). A program with section iter/task runs once when tracing stops and writes what
 * is still open, see iter__write().
 */
#pragma once

#include "event.h"
#include "meta.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "count.bpf.h"
#include "maps.h"
#include "process.bpf.h"
#include "stack.h"

/*
 * Goes between the comparisons of a number with its lower and its upper bound. Without it clang subtracts the lower
 * bound from a copy of the number and makes a single comparison with the copy. The verifiers of 6.1 and 6.12 then know
 * no bounds of the number itself ("unbounded memory access").
 */
#define KEEP_BOUND(number) barrier_var(number)

#define ARG1(ctx) ((ctx)->di)
#define ARG2(ctx) ((ctx)->si)
#define ARG3(ctx) ((ctx)->dx)
#define ARG4(ctx) ((ctx)->cx)
#define ARG5(ctx) ((ctx)->r8)
#define ARG6(ctx) ((ctx)->r9)

/*
 * Wakes the worker, unless a wake-up is pending. The check costs about as much as a record, and a wake-up thirty
 * times that, so only a record that begins a new page of a ring filled beyond its mark does the check.
 */
static __noinline int ring__wake(void)
{
	void *nothing;

	if (bpf_ringbuf_query(&ring_bell, BPF_RB_AVAIL_DATA))
		return 0;
	nothing = bpf_ringbuf_reserve(&ring_bell, sizeof(u64), 0);
	if (nothing)
		bpf_ringbuf_discard(nothing, BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* Counts a record for which there was no room. */
__weak __noinline int ring__lost(u16 id, u64 now)
{
	return loss__add(id >= RAW_FAMILIES ? RAW_FAMILY(id) : FAMILY_INDEX(id), LOSS_RING_FULL, now);
}

/* Tries again to reserve, after another producer has reserved meanwhile. */
__weak __noinline u64 ring__try_again(struct ring *r, u64 need)
{
	return r ? ring__reserve(r, ring_size, need) : RING_NONE;
}

/* The program itself copies a constant size; a helper copies any other. */
static __always_inline void ring__copy(void *to, const void *record, u32 size)
{
	if (__builtin_constant_p(size) && size % 8 == 0)
		__builtin_memcpy(__builtin_assume_aligned(to, 8), __builtin_assume_aligned(record, 8), size);
	else
		bpf_probe_read_kernel(to, size, record);
}

/*
 * Emits a whole record, aligned to 8; its header must be filled. false: there was no room, which was counted as a
 * loss.
 */
static __always_inline bool emit(void *record, u32 size)
{
	u32 cpu = bpf_get_smp_processor_id();
	u64 need = RING_NEED(size), pos;
	struct event *e = record;
	struct ring *r;
	u64 *at;

	r = bpf_map_lookup_elem(&rings, &cpu);
	pos = r ? ring__try(r, ring_size, need) : RING_NONE;
	if (r && pos == RING_LATE)
		pos = ring__try_again(r, need);
	if (!r || pos == RING_NONE) {
		ring__lost(e->id, e->time);
		return false;
	}
	at = ring__at(r, ring_size, pos);
	ring__copy(at + 1, record, size);
	/*
	 * Set it in the copy: reading a word just after a part of it was written stalls the CPU (failed store
	 * forwarding).
	 */
	((struct event *)(at + 1))->cpu = cpu;
	ring__commit(at, size);
	/* signed: the reader may have passed the record already */
	if ((pos ^ (pos + need)) & ~4095ULL && (s64)(pos - *(volatile u64 *)&r->tail) > (s64)ring_mark)
		ring__wake();
	return true;
}

/* Fills the header of an event of the current thread. */
static __always_inline void event__init(struct event *e, u16 id, u64 cookie, u64 now)
{
	u64 pid_tgid = bpf_get_current_pid_tgid();

	e->time = now;
	e->pid = pid_tgid >> 32;
	e->tid = (u32)pid_tgid;
	e->id = id;
	e->probe = (u16)cookie;
	e->flags = 0;
}

/* Set in the key of a placed call, beside its probe's number. No address and no cookie has this bit. */
#define KEY_PLACED (1ULL << 63)

/*
 * An open call by its number. The mask bounds the number for the verifier. Without the barrier newer compilers drop
 * the mask after a comparison with the same bound, and compute the address before the comparison.
 */
static __always_inline struct open_call *call__at(struct thread *th, u32 number)
{
	barrier_var(number);
	return &th->calls[number & (CALL_DEPTH - 1)];
}

/* Emits the topmost open call, with a flag that says that its true end is unknown. */
__weak __noinline int span__drop_top(struct thread *th, u16 flag)
{
	struct open_call *c;
	struct call *call;
	u32 top, size;

	if (!th)
		return 0;
	top = th->depth - 1;
	if (top >= CALL_DEPTH) {
		th->depth = 0;
		return 0;
	}
	th->depth = top;
	c = call__at(th, top);
	call = (struct call *)c->record;
	call->span.event.time = flag == EVENT_NO_DURATION ? call->span.start : bpf_ktime_get_ns();
	call->span.event.flags |= flag;
	size = c->size;
	if (size >= sizeof(struct span)) {
		KEEP_BOUND(size);
		if (size <= CALL_MAX)
			emit(call, size);
	}
	if (flag == EVENT_RETURN_NOT_SEEN)
		loss__count(EVENT_FAMILY(call->span.event.id), LOSS_RETURN, call->span.event.time);
	return 0;
}

/*
 * Closes the topmost open call if the stack has been unwound past it. Returns 1 if it has not, or if there is no open
 * call.
 */
__weak __noinline int span__drop_left(struct thread *th, u64 sp, u64 placed_sp)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 other = task->sas_ss_sp, size = task->sas_ss_size;
	struct open_call *c;
	u32 top;

	if (!th)
		return 1;
	top = th->depth - 1;
	if (top >= CALL_DEPTH)
		return 1;
	c = call__at(th, top);
	if (c->sp >= (c->key & KEY_PLACED ? placed_sp : sp))
		return 1;
	if (sp - other < size && c->sp - other >= size)
		return 1;
	span__drop_top(th, EVENT_RETURN_NOT_SEEN);
	return 0;
}

/*
 * Closes calls that the stack has been unwound past: their frames lie below sp, those of placed calls below
 * placed_sp. Calls that were interrupted by a signal handler on an alternate stack have not been left, wherever the
 * two stacks lie.
 */
__weak __noinline int span__drop_below(struct thread *th, u64 sp, u64 placed_sp)
{
	for (u32 i = 0; i < CALL_DEPTH; i++)
		if (span__drop_left(th, sp, placed_sp))
			break;
	return 0;
}

/*
 * The key that, together with the stack pointer, matches a return with its entry. In a session it is the address of
 * the probe, which the kernel also provides at the return; else the probe's number.
 *
 * At the entry this address equals the instruction pointer, at the return it does not, which distinguishes the two.
 * The kernel's function for this purpose, bpf_session_is_return, can't be used, because libbpf 1.1 can't link several
 * objects that declare it.
 */
static __always_inline u64 span__key(struct pt_regs *ctx)
{
	return span_mode == SPAN_SESSION ? bpf_get_func_ip(ctx) : bpf_get_attach_cookie(ctx);
}

static __always_inline bool span__returning(struct pt_regs *ctx, u64 key)
{
	return span_mode == SPAN_SESSION ? key != ctx->ip : !!(key & COOKIE_RETURN);
}

/*
 * An open call at the same stack pointer as a new call has either been left by a longjmp, or has jumped here at its
 * end (a tail call) and will still return. In the second case the return address on the stack is the one that the
 * kernel put there: the uretprobe trampoline, at the start of a page.
 */
static __noinline int span__is_tail_call(u64 sp)
{
	u64 address = 1;

	bpf_probe_read_user(&address, sizeof(address), (const void *)sp);
	return !(address & 4095);
}

static __always_inline struct open_call *span__top(struct thread *th)
{
	u32 top = th->depth - 1;

	if (top >= CALL_DEPTH)
		return NULL;
	return call__at(th, top);
}

/* Is the thread in a call of one of these families (one bit per family id)? */
static __always_inline bool span__is_within(const struct thread *th, u64 families)
{
	u32 top = th->depth - 1, family;

	if (top >= CALL_DEPTH)
		return false;
	family = EVENT_FAMILY(((const struct event *)call__at((struct thread *)th, top)->record)->id);
	return families >> family % FAMILY_MAX & 1;
}

/*
 * The new call's record; NULL if its process is not selected, if it is made within a call of those families, or if it
 * can't be stored.
 */
static __always_inline void *span__open(struct pt_regs *ctx, u64 key, u64 cookie, u16 id, u32 size, u64 within)
{
	/* reading these fields costs less than bpf_get_current_pid_tgid() */
	struct task_struct *task = bpf_get_current_task_btf();
	struct hit_count *h = probe__hit(cookie);
	u32 tgid = task->tgid, version = processes_version, need = event__need(id);
	struct open_call *c;
	struct thread *th;
	struct call *call;
	u64 sp = ctx->sp;

	th = record_need ? bpf_task_storage_get(&threads, task, 0, 0) : NULL;
	if (!th || th->selected != version) {
		if (!process__has(tgid, need)) {
			if (h)
				h->skipped++;
			return NULL;
		}
		th = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (!th) {
			loss__count(EVENT_FAMILY(id), LOSS_STORAGE, bpf_ktime_get_ns());
			return NULL;
		}
		if (need == record_need)
			th->selected = version;
	}
	c = span__top(th);
	/* the end probe of a placed call has closed it before it jumps to here, so it needs no check for a tail call */
	if (c && c->sp <= sp)
		span__drop_below(th, span__is_tail_call(sp) ? sp : sp + 1, sp + 1);
	if (within && span__is_within(th, within)) {
		if (h)
			h->skipped++;
		return NULL;
	}
	if (th->depth >= CALL_DEPTH) {
		loss__count(EVENT_FAMILY(id), LOSS_DEPTH, bpf_ktime_get_ns());
		return NULL;
	}
	c = call__at(th, th->depth);
	c->sp = sp;
	c->key = key;
	c->size = size;
	call = (struct call *)c->record;
	__builtin_memset(c->record, 0, size);
	call->span.event.pid = tgid;
	call->span.event.tid = task->pid;
	call->span.event.id = id;
	call->span.event.probe = (u16)cookie;
	th->depth++;
	call->span.start = bpf_ktime_get_ns();
	return call;
}

/* The return value of a SPAN program at the entry: 1 makes the kernel skip the return. */
static __always_inline int span__opened(struct call *call)
{
	struct thread *th;

	if (span_mode == SPAN_SESSION)
		return 0;
	if (span_mode == SPAN_PAIR && (process__flags(call->span.event.pid) & PROCESS_RETURNS))
		return 0;
	th = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	if (!th)
		return 1;
	span__drop_top(th, EVENT_NO_DURATION);
	return 1;
}

/* The record of the call that returns now, with its end time and return value; NULL if its entry was not recorded. */
static __always_inline void *span__close(struct pt_regs *ctx, u64 key)
{
	u64 now = bpf_ktime_get_ns();
	struct open_call *c;
	struct thread *th;
	struct call *call;
	u64 sp;

	th = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	if (!th)
		return NULL;
	/* the return instruction has popped the return address */
	sp = ctx->sp - 8;
	c = span__top(th);
	if (c && c->sp < sp) {
		span__drop_below(th, sp, sp);
		c = span__top(th);
	}
	if (span_mode != SPAN_SESSION)
		key &= ~COOKIE_RETURN;
	if (!c || c->sp != sp || c->key != key)
		return NULL;
	call = (struct call *)c->record;
	th->depth--;
	call->span.event.time = now;
	/* all functions traced with SPAN return an int or an enum: the upper half of the register is undefined */
	call->ret = (s32)ctx->ax;
	return call;
}

/* A number that the entry saves for at_return, beside the record; usually a pointer argument. */
#define SPAN_OUT(e) (((struct open_call *)((void *)(e)-offsetof(struct open_call, record)))->out)

#define SPAN__PROGRAM(fn, section, type, at_return, within, at_last)                            \
	static __always_inline void fn##_entry(struct pt_regs *ctx, struct type *e, u32 group); \
	SEC(section)                                                                            \
	int fn(struct pt_regs *ctx)                                                             \
	{                                                                                       \
		u64 key = span__key(ctx), cookie;                                               \
		struct type *e;                                                                 \
                                                                                                \
		_Static_assert(sizeof(*e) <= CALL_MAX, "record too large");                     \
		if (span__returning(ctx, key)) {                                                \
			e = span__close(ctx, key);                                              \
			if (e) {                                                                \
				at_return(e);                                                   \
				emit(e, sizeof(*e));                                            \
			}                                                                       \
			return 0;                                                               \
		}                                                                               \
		cookie = bpf_get_attach_cookie(ctx);                                            \
		e = span__open(ctx, key, cookie, ID_##type, sizeof(*e), within);                \
		if (!e)                                                                         \
			return 1;                                                               \
		fn##_entry(ctx, e, cookie >> COOKIE_GROUP_SHIFT);                               \
		at_last(ctx, e);                                                                \
		return span__opened((struct call *)e);                                          \
	}                                                                                       \
	static __always_inline void fn##_entry(struct pt_regs *ctx, struct type *e, u32 group)

#define SPAN__NOTHING(...)

/*
 * where: "LIBRARY:FUNCTION,FUNCTION;FUNCTION,..."; LIBRARY is the start of the library's file name. A function may be
 * a glob; it does not match functions that another program names, so that one program can take all the others.
 */
#define SPAN(fn, where, type)		      SPAN__PROGRAM(fn, "span/" where, type, SPAN__NOTHING, 0, SPAN__NOTHING)
#define SPAN_EXIT(fn, where, type, at_return) SPAN__PROGRAM(fn, "span/" where, type, at_return, 0, SPAN__NOTHING)
#define SPAN_IF(option, fn, where, type) \
	SPAN__PROGRAM(fn, "span+" #option "/" where, type, SPAN__NOTHING, 0, SPAN__NOTHING)
#define SPAN_EXIT_IF(option, fn, where, type, at_return) \
	SPAN__PROGRAM(fn, "span+" #option "/" where, type, at_return, 0, SPAN__NOTHING)

/* A probe on the entry only; the body is the program and returns 0. */
#define ENTRY(fn, where) SEC("entry/" where) int fn(struct pt_regs *ctx)
/* A probe at a site that the family's host code finds, by this name. */
#define SITE(fn, name) SEC("site/" name) int fn(struct pt_regs *ctx)
/* Loaded only with an option of the family. */
#define SITE_IF(option, fn, name) SEC("site+" #option "/" name) int fn(struct pt_regs *ctx)

/*
 * From an iter/task program: hands a whole record to the worker. seq is ctx->meta->seq, read once and outside of
 * loops: for each such load of a pointer the verifier searches all types of the kernel for several names, which takes
 * 0.3 ms. Not 0: the reader's buffer is full, and the kernel runs the program again for the same task or file.
 */
static __always_inline long iter__write(struct seq_file *seq, void *record, u32 size)
{
	/* a copy: a size that is read back from memory has no bounds for the verifier */
	u32 head = size;

	return bpf_seq_write(seq, &head, sizeof(head)) | bpf_seq_write(seq, record, size);
}

#include "placed.bpf.h"
