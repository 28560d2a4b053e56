/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Kernels as PTX text, which the driver compiles itself: no nvcc is needed, and any GPU takes it. They are
 * written by hand, after the PTX ISA's reference. A line "simulated:" is for the doubles (tests/fakes/cuda/module.c),
 * where it says how long the kernel takes; for the driver it is a comment.
 */
#pragma once

#define VECTOR_ADD "_Z10vector_addPKfS0_Pfi" /* vector_add(float const*, float const*, float*, int) */
#define SPIN	   "_Z4spinyPy" /* spin(unsigned long long, unsigned long long*) */
#define EMPTY	   "_Z5emptyILi4EEvv" /* void empty<4>() */

/* Newest first: a driver that drops old targets, and a GPU that lacks new ones. */
static const char *const kernel_targets[] = { ".version 6.3\n.target sm_70\n", ".version 6.0\n.target sm_50\n" };

static const char kernel_text[] =
	".address_size 64\n"
	/* c[i] = a[i] + b[i] */
	".visible .entry " VECTOR_ADD "(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n"
	"// simulated: ns 4000\n"
	"{\n"
	"	.reg .pred %out;\n"
	"	.reg .b32 %i, %n, %block, %threads, %thread;\n"
	"	.reg .f32 %x, %y, %z;\n"
	"	.reg .b64 %a, %b, %c, %at;\n"
	"	ld.param.u64 %a, [a];\n"
	"	ld.param.u64 %b, [b];\n"
	"	ld.param.u64 %c, [c];\n"
	"	ld.param.u32 %n, [n];\n"
	"	mov.u32 %block, %ctaid.x;\n"
	"	mov.u32 %threads, %ntid.x;\n"
	"	mov.u32 %thread, %tid.x;\n"
	"	mad.lo.u32 %i, %block, %threads, %thread;\n"
	"	setp.ge.u32 %out, %i, %n;\n"
	"	@%out bra end;\n"
	"	cvta.to.global.u64 %a, %a;\n"
	"	cvta.to.global.u64 %b, %b;\n"
	"	cvta.to.global.u64 %c, %c;\n"
	"	mul.wide.u32 %at, %i, 4;\n"
	"	add.u64 %a, %a, %at;\n"
	"	add.u64 %b, %b, %at;\n"
	"	add.u64 %c, %c, %at;\n"
	"	ld.global.f32 %x, [%a];\n"
	"	ld.global.f32 %y, [%b];\n"
	"	add.f32 %z, %x, %y;\n"
	"	st.global.f32 [%c], %z;\n"
	"end:\n"
	"	ret;\n"
	"}\n"
	/* Runs for that many cycles of its multiprocessor; out, if not NULL: the device's time before and after, ns */
	".visible .entry " SPIN "(.param .u64 cycles, .param .u64 out)\n"
	"// simulated: ns from parameter 0\n"
	"{\n"
	"	.reg .pred %more, %none;\n"
	"	.reg .b64 %cycles, %out, %from, %now, %begin, %end;\n"
	"	ld.param.u64 %cycles, [cycles];\n"
	"	ld.param.u64 %out, [out];\n"
	"	mov.u64 %begin, %globaltimer;\n"
	"	mov.u64 %from, %clock64;\n"
	"again:\n"
	"	mov.u64 %now, %clock64;\n"
	"	sub.u64 %now, %now, %from;\n"
	"	setp.lt.u64 %more, %now, %cycles;\n"
	"	@%more bra again;\n"
	"	mov.u64 %end, %globaltimer;\n"
	"	setp.eq.u64 %none, %out, 0;\n"
	"	@%none bra end;\n"
	"	cvta.to.global.u64 %out, %out;\n"
	"	st.global.u64 [%out], %begin;\n"
	"	st.global.u64 [%out+8], %end;\n"
	"end:\n"
	"	ret;\n"
	"}\n"
	".visible .entry " EMPTY "()\n"
	"// simulated: ns 1000\n"
	"{\n"
	"	ret;\n"
	"}\n";
