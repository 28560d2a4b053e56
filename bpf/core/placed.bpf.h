/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Placed calls; sonde.bpf.h includes this file. */
#pragma once

/*
 * The record of the placed call that ends at this site: the open call with the stack pointer that the function had at
 * its entry. The worker derives that stack pointer from the function's code. The call is no longer open then:
 * the topmost open call of *thread is the one in which it was made.
 */
static __always_inline struct span *placed__close(struct pt_regs *ctx, u64 cookie, struct thread **thread)
{
	u64 sp = ctx->sp, bp = ctx->bp, now = bpf_ktime_get_ns();
	struct open_call *c;
	struct thread *th;
	struct span *span;

	/*
	 * Read both registers first: clang would turn a choice between them into one load at a variable offset, which
	 * the verifier refuses.
	 */
	barrier_var(sp);
	barrier_var(bp);
	if (cookie & COOKIE_BY_FRAME_POINTER)
		sp = bp;
	sp += COOKIE_ABOVE(cookie);
	probe__hit(cookie);
	th = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	*thread = th;
	if (!th)
		return NULL;
	c = span__top(th);
	if (c && c->sp < sp) {
		span__drop_below(th, sp, sp);
		c = span__top(th);
	}
	if (!c || c->sp != sp || c->key != (KEY_PLACED | COOKIE_PROBE(cookie)))
		return NULL;
	span = (struct span *)c->record;
	th->depth--;
	span->event.time = now;
	if (cookie & COOKIE_UNWIND)
		span->event.flags |= EVENT_UNWOUND;
	return span;
}

#define PLACED__PROGRAM(fn, section, type)                                                                \
	static __always_inline void fn##_entry(struct pt_regs *ctx, struct type *e, u32 group);           \
	SEC(section)                                                                                      \
	int fn(struct pt_regs *ctx)                                                                       \
	{                                                                                                 \
		u64 cookie = bpf_get_attach_cookie(ctx);                                                  \
		struct thread *th;                                                                        \
		struct type *e;                                                                           \
                                                                                                          \
		_Static_assert(sizeof(*e) <= CALL_MAX, "record too large");                               \
		if (cookie & (COOKIE_EXIT | COOKIE_UNWIND)) {                                             \
			e = (struct type *)placed__close(ctx, cookie, &th);                               \
			if (e)                                                                            \
				emit(e, sizeof(*e));                                                      \
			return 0;                                                                         \
		}                                                                                         \
		e = span__open(ctx, KEY_PLACED | COOKIE_PROBE(cookie), cookie, ID_##type, sizeof(*e), 0); \
		if (e)                                                                                    \
			fn##_entry(ctx, e, cookie >> COOKIE_GROUP_SHIFT);                                 \
		return 0;                                                                                 \
	}                                                                                                 \
	static __always_inline void fn##_entry(struct pt_regs *ctx, struct type *e, u32 group)

/*
 * A call of any function, C++ included, that is probed without changing its return address: the worker finds the ends
 * of the function in its code. The record begins with struct span, because the return value is not known at these
 * ends. An exception that leaves the function sets EVENT_UNWOUND.
 */
#define PLACED(fn, where, type) PLACED__PROGRAM(fn, "placed/" where, type)
