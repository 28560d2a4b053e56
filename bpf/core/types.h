/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Integer types shared by the BPF programs and user code. */
#pragma once

#ifdef __bpf__
#include "vmlinux.h"
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
/* the type that the kernel uses, so that %llu fits everywhere */
typedef unsigned long long u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef long long s64;
#endif
