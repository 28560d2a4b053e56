/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --torch=shapes: the tensors that an operator is called with, read from the registers at its entry. And those that a
 * convolution returns, from which the number of its operations follows.
 */
#pragma once

#include "core/args.h"
#include "torch.h"

#define TORCH_LIST_MAX 8 /* tensors of a list that are recorded */

/*
 * The members of c10::TensorImpl before its key_set_, in words: sizes_and_strides_ (the number of dimensions, and five
 * sizes and five strides, or the address of all sizes, which all strides follow), storage_offset_, numel_, data_type_
 * and device_opt_.
 */
#define TENSOR_SIZES	1
#define TENSOR_STRIDES	6
#define TENSOR_INLINE	5
#define TENSOR_ELEMENTS 12
#define TENSOR_WORDS	14
/*
 * In the last of these words, after two bytes of the type: std::optional<Device>, the device's type, its index, and
 * whether there is one
 */
#define HAS_DEVICE(type) ((type) >> 32 & 0xff)
#define TENSOR_SIZES_MAX 6

/* What torch__argument() needs to know of an argument, in one number. */
#define WHERE(kind, number, key_set) ((kind) | (u64)(number) << 8 | (u64)(key_set) << 16)
#define WHERE_KIND(where)	     ((where)&0xff)
#define WHERE_NUMBER(where)	     ((where) >> 8 & 0xff)
#define WHERE_KEY_SET(where)	     ((where) >> 16 & 0xffff)
#define KEY_SET(cookie)		     (TORCH_KEY_SET_FIRST + 8 * ((cookie) >> TORCH_KEY_SET_SHIFT))
#define WHERE_ELEMENT_SHIFT	     32
#define WHERE_ELEMENT(where)	     ((where) >> WHERE_ELEMENT_SHIFT & 0xff)

/* Reads the sizes and strides of n dimensions to the event, whose fields lie one after the other. */
static __always_inline void torch__sizes(struct torch_shape *e, u64 words, u64 n)
{
	u64 sizes = words + TENSOR_SIZES * sizeof(u64), strides = words + TENSOR_STRIDES * sizeof(u64);
	u64 shown = n < TENSOR_SIZES_MAX ? n : TENSOR_SIZES_MAX;

	barrier_var(shown); /* the verifier would not know the bound of a multiple that was computed before */
	if (n > TENSOR_INLINE) {
		bpf_probe_read_user(&sizes, sizeof(sizes), (const void *)sizes);
		strides = sizes + n * sizeof(u64);
	}
	bpf_probe_read_user(&e->size_0, shown * sizeof(u64), (const void *)sizes);
	bpf_probe_read_user(&e->stride_0, shown * sizeof(u64), (const void *)strides);
}

__weak __noinline int torch__tensor(u64 tensor, u64 call_start, u64 where, u64 time)
{
	u64 words = tensor + WHERE_KEY_SET(where) - TENSOR_WORDS * sizeof(u64), n, last[2];
	struct torch_shape e = {};

	if (bpf_probe_read_user(&n, sizeof(n), (const void *)words) ||
	    bpf_probe_read_user(last, sizeof(last), (const void *)(words + TENSOR_ELEMENTS * sizeof(u64))))
		return 0;
	/* an undefined tensor has no device */
	if (!HAS_DEVICE(last[1]))
		return 0;
	event__init(&e.event, ID_torch_shape, 0, time);
	e.call_start = call_start;
	e.elements = last[0];
	torch__sizes(&e, words, n);
	e.type = last[1] & 0xffff;
	e.device = (s8)(last[1] >> 16);
	e.dimensions = n < 255 ? n : 255;
	e.argument = WHERE_NUMBER(where);
	e.element = WHERE_ELEMENT(where);
	emit(&e, sizeof(e));
	return 0;
}

/* next: what the next register holds. */
__weak __noinline int torch__argument(u64 value, u64 next, u64 call_start, u64 where)
{
	u64 tensors[TORCH_LIST_MAX] = {};
	u32 i;

	if (WHERE_KIND(where) == TORCH_ARG_LIST) {
		for (i = 0; i < TORCH_LIST_MAX; i++) {
			if (i >= next)
				break;
			if (!bpf_probe_read_user(&tensors[0], sizeof(u64), (const void *)(value + 8 * i)))
				torch__tensor(tensors[0], call_start, where | (u64)i << WHERE_ELEMENT_SHIFT,
					      bpf_ktime_get_ns());
		}
		return 0;
	}
	/* the tensor, and whether the optional has one */
	bpf_probe_read_user(tensors, 2 * sizeof(u64), (const void *)value);
	if (WHERE_KIND(where) == TORCH_ARG_TENSOR || (u8)tensors[1])
		torch__tensor(tensors[0], call_start, where, bpf_ktime_get_ns());
	return 0;
}

#define TORCH__REGISTER(i, value, next)                                                                        \
	({                                                                                                     \
		u32 kind = cookie >> (TORCH_KINDS_SHIFT + 2 * (i)) & 3;                                        \
		u32 at = (i) < 3 ? TORCH_NUMBERS_SHIFT + 4 * (i) : TORCH_NUMBERS2_SHIFT + 4 * ((i)-3);         \
                                                                                                               \
		if (kind)                                                                                      \
			torch__argument((value), (next), call_start, WHERE(kind, cookie >> at & 15, key_set)); \
	})

static __always_inline void torch__shapes(struct pt_regs *ctx, u64 cookie, u64 call_start)
{
	u64 key_set = KEY_SET(cookie);
	struct args a = args__read(ctx);

	if (!(cookie >> TORCH_KINDS_SHIFT & TORCH_KINDS_MASK))
		return;
	TORCH__REGISTER(0, a.a1, a.a2);
	TORCH__REGISTER(1, a.a2, a.a3);
	TORCH__REGISTER(2, a.a3, a.a4);
	TORCH__REGISTER(3, a.a4, a.a5);
	TORCH__REGISTER(4, a.a5, a.a6);
	TORCH__REGISTER(5, a.a6, 0);
}

/*
 * The operator writes its result to the address in its first register. Returns that address for torch__results(); in
 * bits that are 0 in an address of tensors are the number of tensors, whether the convolution is transposed, and the
 * cookie's bits for key_set_. 0: the result is not recorded.
 */
#define RESULT_TRANSPOSED  1
#define RESULT_COUNT_SHIFT 1
#define RESULT_ADDRESS	   0x0ffffffffffffff8ULL

static __always_inline u64 torch__result(struct pt_regs *ctx, u64 cookie)
{
	u64 n = cookie >> TORCH_RESULTS_SHIFT & TORCH_RESULTS_MASK, word = cookie >> TORCH_NUMBERS_SHIFT & 15;
	u8 transposed = 0;

	if (!n)
		return 0;
	if (word)
		bpf_probe_read_user(&transposed, sizeof(transposed), (const void *)(ctx->sp + 8 * word));
	return (ARG1(ctx) & RESULT_ADDRESS) | n << RESULT_COUNT_SHIFT | (transposed ? RESULT_TRANSPOSED : 0) |
	       cookie >> TORCH_KEY_SET_SHIFT << TORCH_KEY_SET_SHIFT;
}

/* At the end of a call: result is what torch__result() returned. A std::tuple has its last element first. */
__weak __noinline int torch__results(u64 result, u64 call_start, u64 time)
{
	u64 n = result >> RESULT_COUNT_SHIFT & TORCH_RESULTS_MASK, tensors[TORCH_RESULTS_MASK] = {};
	u64 number = result & RESULT_TRANSPOSED ? TORCH_TRANSPOSED_RESULT : TORCH_RESULT;
	u64 where = WHERE(TORCH_ARG_TENSOR, number, KEY_SET(result));

	bpf_probe_read_user(tensors, n * sizeof(u64), (const void *)(result & RESULT_ADDRESS));
	for (u64 i = 0; i < TORCH_RESULTS_MASK; i++) {
		if (i >= n)
			break;
		torch__tensor(tensors[i], call_start, where | (n - 1 - i) << WHERE_ELEMENT_SHIFT, time);
	}
	return 0;
}
