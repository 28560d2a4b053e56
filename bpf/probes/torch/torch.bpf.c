// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Operators and backward nodes of PyTorch. The host code (torch.c) finds their entries and ends. */
#include "core/args.h"
#include "core/sonde.bpf.h"
#include "core/stack.h"
#include "torch.h"
#include "torch_names.bpf.h"
#include "torch_range.bpf.h"
#include "torch_shape.bpf.h"
#include "torch_step.bpf.h"

OPTION(torch, all,
       "also operators that only make views, reserve memory or call another operator, and tensors' CPU memory");
OPTION(torch, shapes, "sizes, type and device of the tensors that operators are called with");

#define TORCH_FAMILY EVENT_FAMILY(ID_torch_op)

#define TORCH_SAMPLED 255 /* one in 256 calls, by the lowest bits of its end */

/* Sends the time that the programs of a call took, from which the host code calculates what a call costs. */
__weak __noinline int torch__sample(u64 entry_ns, u64 end)
{
	struct torch_sample s = {};

	event__init(&s.event, RAW_OF(EVENT_FAMILY(ID_torch_op)), 0, end);
	s.entry_ns = entry_ns;
	s.end_ns = bpf_ktime_get_ns() - end;
	emit(&s, sizeof(s));
	return 0;
}

/*
 * At an end of a call: counts it in the call in which it was made, and emits its record. SPAN_OUT of the call is when
 * its entry's program began, for torch__sample(). With shapes, of which no cost is measured, it is what torch__result()
 * returned.
 */
static __always_inline void torch__end(struct pt_regs *ctx, u64 cookie, u32 size)
{
	struct open_call *around;
	struct torch_call *e;
	struct thread *th;
	u64 out;
	u32 inner;

	e = (struct torch_call *)placed__close(ctx, cookie, &th);
	if (!e)
		return;
	around = span__top(th);
	inner = e->inner + 1;
	if (around && EVENT_FAMILY(((struct event *)around->record)->id) == TORCH_FAMILY)
		((struct torch_call *)around->record)->inner += inner;
	out = SPAN_OUT(e);
	if (option_torch_shapes && out && !(cookie & COOKIE_UNWIND))
		torch__results(out, e->span.start, e->span.event.time);
	emit(e, size);
	if (!option_torch_shapes && !(e->span.event.time & TORCH_SAMPLED))
		torch__sample(e->span.start - out, e->span.event.time);
}

/* At the entry of a call, whose record is returned; NULL: it is not recorded. */
static __always_inline void *torch__begin(struct pt_regs *ctx, u64 cookie, u16 id, u32 size)
{
	u64 now = bpf_ktime_get_ns();
	struct torch_call *e;

	if (!torch__records()) {
		probe__hit(cookie);
		return NULL;
	}
	e = span__open(ctx, KEY_PLACED | COOKIE_PROBE(cookie), cookie, id, size, 0);

	if (e)
		SPAN_OUT(e) = option_torch_shapes ? 0 : now;
	return e;
}

#define IS_END(cookie) ((cookie) & (COOKIE_EXIT | COOKIE_UNWIND))

/* at::_ops::OP::call(..): the probe has the operator's name. */
SITE(torch_op, "torch_op")
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	struct torch_op *e;

	if (IS_END(cookie)) {
		torch__end(ctx, cookie, sizeof(*e));
		return 0;
	}
	e = torch__begin(ctx, cookie, ID_torch_op, sizeof(*e));
	if (e) {
		e->sequence = -1;
		if (option_torch_shapes) {
			SPAN_OUT(e) = torch__result(ctx, cookie);
			torch__shapes(ctx, cookie, e->span.start);
		}
	}
	return 0;
}

/* torch::autograd::Node::operator()(variable_list &&), which returns a list through its first argument */
SITE(torch_node, "torch_node")
{
	u64 cookie = bpf_get_attach_cookie(ctx), words[TORCH_NODE_WORDS] = {}, node;
	u32 sequence = cookie >> COOKIE_GROUP_SHIFT;
	struct torch_node *e;

	if (IS_END(cookie)) {
		torch__end(ctx, cookie, sizeof(*e));
		return 0;
	}
	node = ARG2(ctx);
	e = torch__begin(ctx, cookie, ID_torch_node, sizeof(*e));
	if (!e)
		return 0;
	bpf_probe_read_user(&e->vtable, sizeof(e->vtable), (const void *)node);
	e->sequence = -1;
	if (sequence && !bpf_probe_read_user(words, sizeof(words), (const void *)(node + sequence * sizeof(u64)))) {
		e->sequence = (s64)words[0];
		e->made_by = (u32)words[TORCH_NODE_THREAD];
	}
	torch__class(e->vtable);
	return 0;
}

/*
 * c10::Dispatcher::callBoxed(const OperatorHandle &, Stack *). The clones that GCC makes of it lack the first
 * argument, the dispatcher. An OperatorHandle begins with a pointer to the OperatorDef.
 */
SITE(torch_boxed, "torch_boxed")
{
	u64 cookie = bpf_get_attach_cookie(ctx), definition = 0, group = cookie >> COOKIE_GROUP_SHIFT;
	struct args a = args__read(ctx);
	bool is_clone = !(group & TORCH_BOXED_METHOD);
	struct torch_op *e;
	int kind;

	if (IS_END(cookie)) {
		torch__end(ctx, cookie, sizeof(*e));
		return 0;
	}
	if (!process__is_selected(bpf_get_current_pid_tgid() >> 32)) {
		struct hit_count *h = probe__hit(cookie);

		if (h)
			h->skipped++;
		return 0;
	}
	bpf_probe_read_user(&definition, sizeof(definition), (const void *)(is_clone ? a.a1 : a.a2));
	kind = torch__operator(definition, group & TORCH_BOXED_OLD_STRINGS ? TORCH_OLD_STRING_SIZE : TORCH_STRING_SIZE);
	if (kind == TORCH_RANGE_BEGINS)
		torch__begin_range(is_clone ? a.a2 : a.a3, cookie);
	if (kind == TORCH_RANGE_ENDS)
		torch__end_range();
	if (kind != TORCH_OBSERVED) {
		probe__hit(cookie);
		return 0;
	}
	e = torch__begin(ctx, cookie, ID_torch_op, sizeof(*e));
	if (!e)
		return 0;
	e->handle = definition;
	e->sequence = -1;
	return 0;
}

/* Functions of c10d that wait for a collective or run one: the probe has the function's name. */
SITE(torch_collective, "torch_collective")
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	struct torch_collective *e;
	struct thread *th;

	if (!IS_END(cookie)) {
		torch__begin(ctx, cookie, ID_torch_collective, sizeof(*e));
		return 0;
	}
	e = (struct torch_collective *)placed__close(ctx, cookie, &th);
	if (e)
		emit(e, sizeof(*e));
	return 0;
}

/*
 * The variable block of a thread: what __tls_get_addr(&{module, offset}) returns. Source: glibc,
 * sysdeps/x86_64/nptl/tls.h: the thread pointer + 8 has the vector of blocks, 16 bytes each. 0: not known.
 */
static __always_inline u64 thread_block(u64 fs_base, u64 at)
{
	u64 index[2] = {}, blocks = 0, block = 0;

	if (bpf_probe_read_user(index, sizeof(index), (const void *)at) ||
	    bpf_probe_read_user(&blocks, sizeof(blocks), (const void *)(fs_base + 8)) ||
	    bpf_probe_read_user(&block, sizeof(block), (const void *)(blocks + index[0] * 16)))
		return 0;
	return block + index[1];
}

/*
 * In at::sequence_number::get_and_increment(), which numbers a new backward node: at its call of __tls_get_addr, or
 * after the call. The host code has read from the next instructions where the thread's next number lies.
 */
SITE(torch_made, "torch_made")
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 cookie = bpf_get_attach_cookie(ctx), thread_at = cookie >> TORCH_MADE_THREAD_SHIFT & 0xffff, block;
	struct thread *th = bpf_task_storage_get(&threads, task, 0, 0);
	struct open_call *c = th ? span__top(th) : NULL;
	u64 index = ARG1(ctx), result = ctx->ax, thread = 0;
	struct torch_op *made_by;
	s64 sequence;

	probe__hit(cookie);
	if (!c)
		return 0;
	made_by = (struct torch_op *)c->record;
	if (made_by->span.event.id != ID_torch_op || made_by->sequence != -1)
		return 0;
	block = cookie & TORCH_MADE_AFTER ? result : thread_block(task->thread.fsbase, index);
	if (!block ||
	    bpf_probe_read_user(&sequence, sizeof(sequence), (const void *)(block + (cookie >> COOKIE_GROUP_SHIFT))))
		return 0;
	if (thread_at)
		bpf_probe_read_user(&thread, sizeof(thread), (const void *)(block + thread_at));
	made_by->sequence = sequence;
	made_by->thread = (u32)thread;
	return 0;
}

/* ProfiledCPUMemoryReporter::New(this, void *, size_t), Delete(this, void *): called without a profiler, too */
SEC("entry+all/libc10.so:_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm;_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv")
int torch_memory(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 cookie = bpf_get_attach_cookie(ctx), bytes = ARG3(ctx);
	bool is_free = cookie >> COOKIE_GROUP_SHIFT;
	struct torch_alloc e = {};
	struct open_call *c;
	struct thread *th;

	if (!probe__is_selected(cookie))
		return 0;
	if (!torch__records())
		return 0;
	event__init(&e.event, ID_torch_alloc, cookie, bpf_ktime_get_ns());
	e.address = ARG2(ctx);
	e.bytes = is_free ? 0 : bytes;
	e.action = is_free ? TORCH_FREED : TORCH_ALLOCATED;
	th = bpf_task_storage_get(&threads, task, 0, 0);
	c = th ? span__top(th) : NULL;
	if (c && EVENT_FAMILY(((struct event *)c->record)->id) == TORCH_FAMILY)
		e.call_start = ((struct span *)c->record)->start;
	emit(&e, sizeof(e));
	return 0;
}
