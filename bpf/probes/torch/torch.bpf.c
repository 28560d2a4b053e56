// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Operators and backward nodes of PyTorch. The host code (torch.c) finds their entries and ends. */
#include "core/args.h"
#include "core/sonde.bpf.h"
#include "torch.h"
#include "torch_module.bpf.h"
#include "torch_names.bpf.h"
#include "torch_range.bpf.h"
#include "torch_shape.bpf.h"
#include "torch_stack.bpf.h"
#include "torch_step.bpf.h"

#include "core/shim_records.bpf.h"

OPTION(torch, all,
       "also operators that only make views, reserve memory or call another operator, and tensors' CPU memory");
OPTION(torch, shim, "by the library in the process, for less, and without the options above; --inject implies it");
OPTION(torch, inner, "with --torch=shim: also operators that operators call");
OPTION(torch, every, "with --torch=shim: every step, whatever that costs (--torch-budget none)");
OPTION(torch, shapes, "sizes, type and device of the tensors that operators are called with");

/*
 * At an end of a call: counts it in the call in which it was made, and emits its record. With shapes, SPAN_OUT of the
 * call is what torch__result() returned.
 */
static __always_inline void torch__end(struct pt_regs *ctx, u64 cookie, u32 size)
{
	struct torch_call *e, *around;
	struct thread *th;
	u32 inner, took;
	u64 result;

	e = (struct torch_call *)placed__close(ctx, cookie, &th);
	if (!e)
		return;
	inner = e->inner + 1;
	around = torch__around(th, 1);
	if (around)
		around->inner += inner;
	result = SPAN_OUT(e);
	if (option_torch_shapes && result && !(cookie & COOKIE_UNWIND))
		torch__results(result, e->span.start, e->span.event.time);
	emit(e, size);
	took = bpf_ktime_get_ns() - e->span.event.time;
	if (around)
		around->probes_ns += e->probes_ns + e->entry_ns + took;
	if (torch__is_sampled(e->span.event.time)) {
		torch__sample(TORCH_SAMPLE_ENTRY, e->entry_ns);
		torch__sample(TORCH_SAMPLE_END, took);
	}
}

/*
 * At the entry of a call, whose record is returned; NULL: it is not recorded. It begins once its stack has been read,
 * so that its duration does not contain that.
 */
static __always_inline void *torch__begin(struct pt_regs *ctx, u64 cookie, u16 id, u32 size, bool stacks)
{
	u64 now = bpf_ktime_get_ns();
	struct torch_call *e;

	if (!torch__records()) {
		probe__hit(cookie);
		return NULL;
	}
	e = span__open(ctx, KEY_PLACED | COOKIE_PROBE(cookie), cookie, id, size, 0);

	if (!e)
		return NULL;
	SPAN_OUT(e) = 0;
	e->sequence = -1;
	if (stacks) {
		e->stack = torch__stack(now);
		e->span.start = bpf_ktime_get_ns();
	}
	e->entry_ns = e->span.start - now;
	return e;
}

/* Adds the time that a program has run since `now` to the call around, and a number of hits. Returns the time in ns. */
static __always_inline u32 torch__took(u64 now, u32 hits)
{
	struct thread *th = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	struct torch_call *around = th ? torch__around(th, 1) : NULL;
	u32 took = bpf_ktime_get_ns() - now;

	if (around) {
		around->hits += hits;
		around->probes_ns += took;
	}
	return took;
}

/* At the end of a program that is neither at the entry nor at an end of a call, which began at `now`. */
static __always_inline void torch__hit(u64 now)
{
	u32 took = torch__took(now, 1);

	if (torch__is_sampled(now))
		torch__sample(TORCH_SAMPLE_HIT, took);
}

#define IS_END(cookie) ((cookie) & (COOKIE_EXIT | COOKIE_UNWIND))

static __always_inline int torch__at_op(struct pt_regs *ctx, bool stacks)
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	struct torch_op *e;

	if (IS_END(cookie)) {
		torch__end(ctx, cookie, sizeof(*e));
		return 0;
	}
	e = torch__begin(ctx, cookie, ID_torch_op, sizeof(*e), stacks);
	if (e && option_torch_shapes) {
		SPAN_OUT(e) = torch__result(ctx, cookie);
		torch__shapes(ctx, cookie, e->span.start);
		e->probes_ns = bpf_ktime_get_ns() - e->span.start;
	}
	return 0;
}

static __always_inline int torch__at_node(struct pt_regs *ctx, bool stacks)
{
	u64 cookie = bpf_get_attach_cookie(ctx), words[TORCH_NODE_WORDS] = {}, node;
	u32 sequence = cookie >> COOKIE_GROUP_SHIFT;
	struct torch_node *e;

	if (IS_END(cookie)) {
		torch__end(ctx, cookie, sizeof(*e));
		return 0;
	}
	node = ARG2(ctx);
	e = torch__begin(ctx, cookie, ID_torch_node, sizeof(*e), stacks);
	if (!e)
		return 0;
	bpf_probe_read_user(&e->vtable, sizeof(e->vtable), (const void *)node);
	e->sequence = -1;
	if (sequence && !bpf_probe_read_user(words, sizeof(words), (const void *)(node + sequence * sizeof(u64)))) {
		e->sequence = (s64)words[0];
		e->made_by = (u32)words[TORCH_NODE_THREAD];
	}
	torch__class(e->vtable);
	e->probes_ns = bpf_ktime_get_ns() - e->span.start;
	return 0;
}

static __always_inline int torch__at_boxed(struct pt_regs *ctx, bool stacks)
{
	u64 cookie = bpf_get_attach_cookie(ctx), now = bpf_ktime_get_ns(), definition = 0;
	u64 group = cookie >> COOKIE_GROUP_SHIFT;
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
		torch__hit(now);
		return 0;
	}
	torch__took(now, 0);
	e = torch__begin(ctx, cookie, ID_torch_op, sizeof(*e), stacks);
	if (e)
		e->handle = definition;
	return 0;
}

/* at::_ops::OP::call(..): the probe has the operator's name. */
SITE(torch_op, "torch_op")
{
	return torch__at_op(ctx, false);
}

/* torch::autograd::Node::operator()(variable_list &&), which returns a list through its first argument */
SITE(torch_node, "torch_node")
{
	return torch__at_node(ctx, false);
}

/*
 * c10::Dispatcher::callBoxed(const OperatorHandle &, Stack *). The clones that GCC makes of it lack the first
 * argument, the dispatcher. An OperatorHandle begins with a pointer to the OperatorDef.
 */
SITE(torch_boxed, "torch_boxed")
{
	return torch__at_boxed(ctx, false);
}

/* The same three with the stack walker, which takes long to verify. */
SITE_IF(stacks, torch_op_stacks, "torch_op_stacks")
{
	return torch__at_op(ctx, true);
}

SITE_IF(stacks, torch_node_stacks, "torch_node_stacks")
{
	return torch__at_node(ctx, true);
}

SITE_IF(stacks, torch_boxed_stacks, "torch_boxed_stacks")
{
	return torch__at_boxed(ctx, true);
}

/* Functions of c10d that wait for a collective or run one: the probe has the function's name. */
SITE(torch_collective, "torch_collective")
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	struct torch_call *e;

	if (IS_END(cookie)) {
		torch__end(ctx, cookie, sizeof(struct torch_collective));
		return 0;
	}
	e = torch__begin(ctx, cookie, ID_torch_collective, sizeof(struct torch_collective), false);
	if (e) {
		/* the call around gets what the probes within took; these fields are beyond the end of the record */
		e->inner = 0;
		e->hits = 0;
		e->probes_ns = 0;
	}
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
static __always_inline void torch__number(struct pt_regs *ctx, u64 cookie, struct torch_op *made_by)
{
	s64 thread_at = (s16)(cookie >> TORCH_MADE_THREAD_SHIFT);
	u64 index = ARG1(ctx), result = ctx->ax, thread = 0;
	u64 block = cookie & TORCH_MADE_AFTER ? result : thread_block(bpf_get_current_task_btf()->thread.fsbase, index);
	s64 sequence;

	if (!block ||
	    bpf_probe_read_user(&sequence, sizeof(sequence), (const void *)(block + (cookie >> COOKIE_GROUP_SHIFT))))
		return;
	if (thread_at)
		bpf_probe_read_user(&thread, sizeof(thread), (const void *)(block + thread_at));
	made_by->sequence = sequence;
	made_by->thread = (u32)thread;
}

SITE(torch_made, "torch_made")
{
	u64 cookie = bpf_get_attach_cookie(ctx), now = bpf_ktime_get_ns();
	struct thread *th = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	struct torch_call *made_by = th ? torch__around(th, 1) : NULL;

	probe__hit(cookie);
	if (!made_by)
		return 0;
	if (made_by->span.event.id == ID_torch_op && made_by->sequence == -1)
		torch__number(ctx, cookie, (struct torch_op *)made_by);
	torch__hit(now);
	return 0;
}

/* ProfiledCPUMemoryReporter::New(this, void *, size_t), Delete(this, void *): called without a profiler, too */
SEC("entry+all/libc10.so:_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm;_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv")
int torch_memory(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 cookie = bpf_get_attach_cookie(ctx), bytes = ARG3(ctx);
	bool is_free = cookie >> COOKIE_GROUP_SHIFT;
	struct torch_call *around;
	struct torch_alloc e = {};
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
	around = th ? torch__around(th, 1) : NULL;
	if (around)
		e.call_start = around->span.start;
	emit(&e, sizeof(e));
	torch__hit(e.event.time);
	return 0;
}

/* Not inline: with the record and the walk on the stack at once 6.1 refuses the program. */
static __noinline void torch__emit_module(const struct python_layout *l, u64 frame, u32 stack, u64 cookie, u64 now)
{
	struct torch_module e = {};

	event__init(&e.event, ID_torch_module, cookie, now);
	e.stack = stack;
	torch__self(&e, l, frame);
	if (*e.name)
		emit(&e, sizeof(e));
}

static __always_inline void torch__at_module(u64 cookie, u64 now)
{
	struct task_struct *me = bpf_get_current_task_btf();
	const struct python_layout *l = python__layout_here();
	struct torch_walked *w;
	u64 frame, instr;
	bool is_known;
	u32 stack;

	if (!l)
		return;
	is_known = python__position(me, &frame, &instr);
	if (is_known && !torch__calls_module(l, frame))
		return;
	w = bpf_task_storage_get(&torch_walked, me, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!w || !torch__may_walk(w, now)) {
		loss__count(TORCH_FAMILY, w ? LOSS_RATE : LOSS_STORAGE, now);
		return;
	}
	stack = python__stack(STACK_FRAMES);
	/* the first walk of a thread finds its position */
	if (!is_known && (!python__position(me, &frame, &instr) || !torch__calls_module(l, frame)))
		return;
	if (stack)
		torch__emit_module(l, frame, stack, cookie, now);
}

/* torch::jit::tracer::getTracingState() */
SEC("entry+stacks/libtorch_cpu.so:_ZN5torch3jit6tracer15getTracingStateEv")
int torch_module(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx), now = bpf_ktime_get_ns();

	if (!probe__is_selected(cookie) || !torch__records())
		return 0;
	torch__at_module(cookie, now);
	torch__took(now, 1);
	return 0;
}

/* void sonde_cupti_torch(const struct shim_lane_batch *batch, uint64_t bytes) */
SEC("entry+shim/libsonde-cupti.so:sonde_cupti_torch") int torch_records(struct pt_regs *ctx)
{
	return shim__pass(ctx, TORCH_FAMILY, true);
}

/* These probes exist only because the kernel raises the shim's semaphores for them. Their program never runs. */
SITE_IF(shim, torch_control, "torch control")
{
	return 0;
}
