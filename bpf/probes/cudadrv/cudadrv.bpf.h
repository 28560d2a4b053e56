/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs of this family share: the rule for nested calls, and reading handles that a call returns through
 * pointers.
 */
#pragma once

#include "core/at_call.bpf.h"
#include "cudadrv.h"
#include "probes/cuda/cuda.h"
#include "probes/cuda/cuda_calls.bpf.h"

extern const volatile bool option_cuda_stacks;
extern const volatile bool option_cudadrv_stacks;
extern const volatile bool option_cudadrv_nested;

/*
 * The runtime implements each of its calls by calls of the driver, and the driver calls itself. Only the outermost
 * call is recorded.
 */
#define CUDADRV_WITHIN \
	(option_cudadrv_nested ? 0 : FAMILY_BIT(EVENT_FAMILY(ID_cuda_call)) | FAMILY_BIT(EVENT_FAMILY(ID_cudadrv_call)))
#define CUDADRV_STACK(ctx, e) AT_CALL__STACK(ctx, e, option_cuda_stacks || option_cudadrv_stacks)

#define DRIVER(fn, where, type) \
	SPAN__PROGRAM(fn, "span/libcuda.so:" where, type, SPAN__NOTHING, CUDADRV_WITHIN, SPAN__NOTHING)
#define DRIVER_EXIT(fn, where, type, at_return) \
	SPAN__PROGRAM(fn, "span/libcuda.so:" where, type, at_return, CUDADRV_WITHIN, SPAN__NOTHING)
/* With a Python stack, if the option is given. */
#define DRIVER_STACK(fn, where, type) \
	SPAN__PROGRAM(fn, "span/libcuda.so:" where, type, SPAN__NOTHING, CUDADRV_WITHIN, CUDADRV_STACK)
#define DRIVER_STACK_EXIT(fn, where, type, at_return) \
	SPAN__PROGRAM(fn, "span/libcuda.so:" where, type, at_return, CUDADRV_WITHIN, CUDADRV_STACK)
#define DRIVER_IF(word, fn, where, type) \
	SPAN__PROGRAM(fn, "span+" #word "/libcuda.so:" where, type, SPAN__NOTHING, CUDADRV_WITHIN, SPAN__NOTHING)
#define DRIVER_EXIT_IF(word, fn, where, type, at_return) \
	SPAN__PROGRAM(fn, "span+" #word "/libcuda.so:" where, type, at_return, CUDADRV_WITHIN, SPAN__NOTHING)
