/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What cuda_api.bpf.h requires of the driver. */
#pragma once

#include "core/sonde.bpf.h"
#include "cudadrv.h"
#include "probes/cuda/cuda.h"

extern const volatile bool option_cuda_stacks;
extern const volatile bool option_cudadrv_stacks;
extern const volatile bool option_cudadrv_nested;

#define API	    "cu"
#define LIBRARY	    "libcuda.so"
#define NAME(event) cudadrv_##event
#define RUNTIME(...)
#define DRIVER(...) __VA_ARGS__
/*
 * The runtime implements each of its calls by calls of the driver, and the driver calls itself. Only the outermost
 * call is recorded.
 */
#define WITHIN \
	(option_cudadrv_nested ? 0 : FAMILY_BIT(EVENT_FAMILY(ID_cuda_call)) | FAMILY_BIT(EVENT_FAMILY(ID_cudadrv_call)))
#define STACKS (option_cuda_stacks || option_cudadrv_stacks)

#include "probes/cuda/cuda_api.bpf.h"
