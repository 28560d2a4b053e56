/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The macros for calls that record a Python stack: those that give the device work, allocate or wait. */
#pragma once

#include "core/at_call.bpf.h"

extern const volatile bool option_cuda_stacks;

#define CUDA_STACK(ctx, e)	   AT_CALL__STACK(ctx, e, option_cuda_stacks)
#define CUDA_CALL(fn, where, type) SPAN__PROGRAM(fn, "span/libcudart.so:" where, type, SPAN__NOTHING, 0, CUDA_STACK)
#define CUDA_CALL_EXIT(fn, where, type, at_return) \
	SPAN__PROGRAM(fn, "span/libcudart.so:" where, type, at_return, 0, CUDA_STACK)
