/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of PyTorch (libtorch_cpu). What is probed, and which versions were examined: docs/torch.md. Layouts:
 * torch/csrc/autograd/function.h, ATen/core/dispatch/OperatorEntry.h, c10/core/TensorImpl.h of PyTorch 2.13.
 */
#pragma once

#include "core/event.h"
#include "core/schedule.h"
#include "core/shim.h"
#include "core/shim_torch.h"

FAMILY(torch, 0x0e, FAMILY_ON_REQUEST, "PyTorch: operators, backward nodes, optimizer and data-loader steps");

/*
 * torch::autograd::Node begins with its vtable. The cookie of its probe has the number of the word that is its
 * sequence_nr_, in its group: 2 in 2.13, 3 in 2.6; 0: not known. thread_id_ lies three words after it.
 */
#define TORCH_NODE_THREAD 3
#define TORCH_NODE_WORDS  4

/*
 * The group of the cookie of callBoxed: is the dispatcher its first argument, and are its library's strings those of
 * libstdc++ from before C++11, one pointer each? Of both kinds of string the first word is the address of the text.
 */
#define TORCH_BOXED_METHOD	1
#define TORCH_BOXED_OLD_STRINGS 2

#define TORCH_STRING_SIZE     32 /* a std::string of libstdc++ */
#define TORCH_OLD_STRING_SIZE 8

/*
 * The cookie of the site where a backward node gets its number: in its group the offset of the number from the result
 * of __tls_get_addr, in the bits 16 to 31 that of the thread's number, which may be negative (0: not known). With the
 * flag the site is after that call, else at it.
 */
#define TORCH_MADE_AFTER	(1ULL << 32)
#define TORCH_MADE_THREAD_SHIFT 16

#define TORCH_IVALUE_SIZE     16 /* c10::IValue; its first word points to the object */
#define TORCH_CONSTANT_STRING 16 /* offset of the std::string in c10::ivalue::ConstantString */

#define TORCH_STEP_NAME 64 /* bytes of the name of ranges that end steps, with its NUL */

/* How a register holds an argument that is a tensor. */
enum torch_arg {
	TORCH_ARG_NONE = 0, /* it holds another one */
	TORCH_ARG_TENSOR, /* the address of a Tensor */
	TORCH_ARG_OPTIONAL, /* the address of a std::optional<Tensor> */
	TORCH_ARG_LIST, /* the address of an array of Tensors, and the next register their number */
};

/*
 * The cookie of an operator's entry, with --torch=shapes: enum torch_arg of the six registers in its bits 48 to 59, the
 * numbers of their arguments in the bits 36 to 47 and 16 to 27, and in the bits 60 to 63 where a TensorImpl has its
 * key_set_: at 128 + 8 times this number. Of an operator whose result is recorded, too, the bits 28 and 29 are its
 * number of tensors, and the number of the first register, which holds the result's address, is where on the stack, in
 * words of 8 bytes, its argument `transposed` lies (0: it has none).
 */
#define TORCH_KINDS_SHIFT    48
#define TORCH_KINDS_MASK     0xfff
#define TORCH_NUMBERS_SHIFT  36 /* of the first three registers */
#define TORCH_NUMBERS2_SHIFT 16 /* of the others */
#define TORCH_RESULTS_SHIFT  28
#define TORCH_RESULTS_MASK   3
#define TORCH_KEY_SET_SHIFT  60
#define TORCH_KEY_SET_FIRST  128

/* The program that a sample is the time of, without the trap. */
enum torch_sampled {
	TORCH_SAMPLE_ENTRY, /* the program at the entry of a call */
	TORCH_SAMPLE_END, /* the program at its end */
	TORCH_SAMPLE_HIT, /* the program of a probe that is neither */
	TORCH_SAMPLES
};

/* A raw record: what the programs of one in some 256 calls or hits took. */
struct torch_sample {
	struct event event;
	u32 kind; /* enum torch_sampled */
	u32 ns;
};

/* The start of torch_op and torch_node. */
struct torch_call {
	struct span span;
	u64 object UNIT(hex);
	s64 sequence;
	u32 inner;
	u32 thread;
	u32 hits;
	u32 entry_ns UNIT(ns);
	u32 stack UNIT(stack);
	u64 probes_ns UNIT(ns);
};

/*
 * Calls are nested by time within their thread. A call's duration contains what its own probes and those within it
 * took; docs/torch.md states how the reports subtract it.
 */
struct torch_op {
	struct span span;
	u64 handle UNIT(hex) DOC(
		"of a boxed call, or with --torch=shim: the operator that event torch_operator of this process names; 0: the probe has its name");
	s64 sequence
		DOC("sequence number of the first backward node that this call made; -1: it made none, or not known");
	u32 inner DOC("calls of this family that were recorded within it on its thread, at any depth");
	u32 thread DOC("of the node with this sequence number: its torch_node.made_by; 0: not known");
	u32 hits DOC(
		"hits of the family's other probes within it, but not within a call in it; with --torch=shim calls that are not recorded");
	u32 entry_ns UNIT(ns) DOC("what the program at its entry took before start");
	u32 stack UNIT(stack) DOC("Python stack at the call, with --torch=stacks; 0: not known");
	u64 probes_ns UNIT(ns) DOC("what the programs of all probes that were hit within it took, without the traps");
} EVENT(torch_op, 0x0e01, "a call of an operator; the name of its probe is the operator's: aten::add.Tensor");

struct torch_operator {
	struct event event;
	u64 handle UNIT(hex) DOC("as in torch_op");
	char name[96];
	char overload[40];
} EVENT(torch_operator, 0x0e02, "the name of an operator that a process calls boxed, written once");

struct torch_node {
	struct span span;
	u64 vtable UNIT(hex) DOC(
		"of the node's class, which event torch_class of this process names, with --torch=shim torch_operator");
	s64 sequence DOC("sequence number, which the operator's call that made it has, too; -1: it has none");
	u32 inner DOC("as in torch_op");
	u32 made_by DOC("the thread that made it, by the number that PyTorch gives threads; 0: not known");
	u32 hits DOC("as in torch_op");
	u32 entry_ns UNIT(ns) DOC("as in torch_op");
	u32 stack UNIT(stack) DOC("as in torch_op");
	u64 probes_ns UNIT(ns) DOC("as in torch_op");
} EVENT(torch_node, 0x0e03, "a node of the backward graph was evaluated");

struct torch_class {
	struct event event;
	u64 vtable UNIT(hex) DOC("as in torch_node");
	char name[104] DOC("the class, as its std::type_info has it: N5torch8autograd9generated14AddmmBackward0E");
} EVENT(torch_class, 0x0e04, "the name of a class of backward nodes in a process, written once");

struct torch_range {
	struct span span;
	char name[104];
} EVENT(torch_range, 0x0e05, "a range that PyTorch or the program names: optimizer step, data loader, record_function");

enum torch_memory {
	TORCH_ALLOCATED = 1,
	TORCH_FREED = 2,
};

struct torch_alloc {
	struct event event;
	u64 address UNIT(hex) DOC("names the memory until it is freed");
	u64 bytes UNIT(bytes) DOC("0 when it is freed");
	u64 call_start UNIT(moment) DOC("start of the innermost recorded operator or node of the thread; 0: none");
	enum torch_memory action;
} EVENT(torch_alloc, 0x0e06, "CPU memory of a tensor was allocated or freed, with --torch=all");

/* torch_shape.argument of a tensor that is returned */
#define TORCH_RESULT		255
#define TORCH_TRANSPOSED_RESULT 254

/* c10::ScalarType */
enum torch_type {
	TORCH_UINT8 = 0,
	TORCH_INT8 = 1,
	TORCH_INT16 = 2,
	TORCH_INT32 = 3,
	TORCH_INT64 = 4,
	TORCH_FLOAT16 = 5,
	TORCH_FLOAT32 = 6,
	TORCH_FLOAT64 = 7,
	TORCH_COMPLEX32 = 8,
	TORCH_COMPLEX64 = 9,
	TORCH_COMPLEX128 = 10,
	TORCH_BOOL = 11,
	TORCH_BFLOAT16 = 15,
};

struct torch_shape {
	struct event event;
	u64 call_start UNIT(moment) DOC("start of the operator's call on this thread: which call it is");
	u64 elements DOC("of the tensor");
	u64 size_0 DOC("of its first dimension");
	u64 size_1;
	u64 size_2;
	u64 size_3;
	u64 size_4;
	u64 size_5;
	u64 stride_0 DOC("of its first dimension: how many elements lie between two neighbours");
	u64 stride_1;
	u64 stride_2;
	u64 stride_3;
	u64 stride_4;
	u64 stride_5;
	enum torch_type type;
	u8 argument DOC(
		"number of the argument, from 0; 255: the result of a convolution; 254: the result of a transposed convolution");
	u8 element DOC("number of the tensor in a list of tensors or in the result, from 0");
	u8 dimensions DOC("of the tensor; sizes and strides beyond the sixth are not recorded");
	s8 device DOC("c10::DeviceType: 0 CPU, 1 CUDA");
} EVENT(torch_shape, 0x0e07, "a tensor that an operator was called with, with --torch=shapes");

struct torch_cost {
	struct event event;
	u64 call UNIT(ns) DOC(
		"what the probes of a call take: two traps, and the median run time of both programs; with --torch=shim what recording a call takes");
	u64 own UNIT(ns) DOC(
		"what they add to its own duration: one trap, with the kernel's code in the CPU's caches; with --torch=shim a part of the call");
	u64 entry UNIT(ns) DOC(
		"entry_ns of a call whose program had its memory in the CPU's caches: of 5% it was lower; 0 with --torch=stacks");
	u64 hit UNIT(ns)
		DOC("what a hit of another probe of the family takes, or with --torch=shim a call that is not recorded");
} EVENT(torch_cost, 0x0e08,
	"the cost of a recorded call on this machine, with --torch=shim in this process, for the correction of durations");

struct torch_collective {
	struct span span;
} EVENT(torch_collective, 0x0e0a,
	"a thread waited for a collective of torch.distributed, or a thread of gloo ran one (AsyncWork::execute)");

struct torch_module {
	struct event event;
	u64 module UNIT(hex) DOC("address of the object in its process");
	u32 stack UNIT(stack) DOC("Python stack, with Module._call_impl() on top, which calls forward()");
	char name[60] DOC("its class");
} EVENT(torch_module, 0x0e0b, "an nn.Module is called, with --torch=stacks; from Python 3.11 on");

struct torch_dropped {
	struct event event;
	struct shim_torch_dropped dropped;
} EVENT(torch_dropped, 0x0e0c, "calls that the shim could not record, with --torch=shim");

struct torch_shim {
	struct event event;
	struct shim_state shim;
	char text[];
} EVENT(torch_shim, 0x0e0d, "the shim began to record PyTorch, stopped, or can't, with --torch=shim");

struct torch_rest {
	struct span span;
	struct shim_torch_rest rest;
} EVENT(torch_rest, 0x0e0f,
	"only ranges were recorded, to keep within --torch-budget; once with no duration when it begins");

struct torch_step {
	struct span span;
	u64 step DOC(
		"its number, from 0 on: counted from the start of the process, or where that is older from the first end of a step that was recorded");
	u32 cycle DOC("of --schedule, from 1 on; 0: without a schedule");
} EVENT(torch_step, 0x0e10, "a step of a training loop, with --step, --schedule or --torch=shim; it ends with a range");

struct torch_phase {
	struct event event;
	u64 step DOC("the first step of the phase, as in torch_step");
	u64 postponed DOC("steps by which the schedule is late, because probes were not attached yet");
	u64 since UNIT(moment) DOC("the end of an active phase: when it began; else 0");
	u32 cycle DOC("as in torch_step");
	enum step_phase phase;
} EVENT(torch_phase, 0x0e11, "a phase of --schedule begins in a process");
