/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What cuda_api.bpf.h requires of the runtime. */
#pragma once

#include "core/sonde.bpf.h"
#include "cuda.h"

extern const volatile bool option_cuda_stacks;

#define API	     "cuda"
#define LIBRARY	     "libcudart.so"
#define NAME(event)  cuda_##event
#define RUNTIME(...) __VA_ARGS__
#define DRIVER(...)
#define WITHIN 0
#define STACKS option_cuda_stacks

#include "cuda_api.bpf.h"
