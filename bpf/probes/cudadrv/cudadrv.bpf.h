/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs of this family share: which calls are recorded, and how handles come back. */
#ifndef SONDE_CUDADRV_BPF_H
#define SONDE_CUDADRV_BPF_H

#include "core/args.h"
#include "core/at_call.bpf.h"
#include "cudadrv.h"

extern const volatile bool option_cuda_stacks;
extern const volatile bool option_cudadrv_stacks;
extern const volatile bool option_cudadrv_nested;

/* The runtime calls the driver for all it does, and the driver calls itself: the outermost call says it all. */
#define CUDADRV_WITHIN \
	(option_cudadrv_nested ? 0 : 1ULL << EVENT_FAMILY(ID_cuda_call) | 1ULL << EVENT_FAMILY(ID_cudadrv_call))
#define CUDADRV_STACK(ctx, e) AT_CALL__STACK(ctx, e, option_cuda_stacks || option_cudadrv_stacks)

#define DRIVER(fn, where, type) \
	SPAN__PROGRAM(fn, "span/libcuda.so:" where, type, SPAN__NOTHING, CUDADRV_WITHIN, SPAN__NOTHING)
#define DRIVER_EXIT(fn, where, type, at_return) \
	SPAN__PROGRAM(fn, "span/libcuda.so:" where, type, at_return, CUDADRV_WITHIN, SPAN__NOTHING)
/* With the Python stack if it is wanted */
#define DRIVER_STACK(fn, where, type) \
	SPAN__PROGRAM(fn, "span/libcuda.so:" where, type, SPAN__NOTHING, CUDADRV_WITHIN, CUDADRV_STACK)
#define DRIVER_STACK_EXIT(fn, where, type, at_return) \
	SPAN__PROGRAM(fn, "span/libcuda.so:" where, type, at_return, CUDADRV_WITHIN, CUDADRV_STACK)
#define DRIVER_IF(word, fn, where, type) \
	SPAN__PROGRAM(fn, "span+" #word "/libcuda.so:" where, type, SPAN__NOTHING, CUDADRV_WITHIN, SPAN__NOTHING)
#define DRIVER_EXIT_IF(word, fn, where, type, at_return) \
	SPAN__PROGRAM(fn, "span+" #word "/libcuda.so:" where, type, at_return, CUDADRV_WITHIN, SPAN__NOTHING)

#endif
