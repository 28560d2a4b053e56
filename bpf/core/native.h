/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread's native user stack on its way from BPF to the worker, which unwinds it (user/record/stacks/native.c). It
 * contains what unwinding needs: the registers, the newest bytes of the stack (for functions without frame pointers),
 * and the chain of frame pointers (for the callers beyond those bytes).
 */
#pragma once

#include "types.h"

#define NATIVE_WINDOW 1536 /* bytes */
#define NATIVE_CHAIN  256

/*
 * A link of the chain: the return address next to the saved frame pointer, and the distance to the next link in units
 * of 8 bytes.
 */
#define NATIVE_ADDRESS(link)  ((link) & ((1ULL << 48) - 1))
#define NATIVE_DISTANCE(link) ((link) >> 48 << 3)

struct native_stack {
	u64 ip, sp, bp; /* 0: the registers could not be read */
	u32 window; /* bytes of stack[] that could be read */
	u32 links; /* number of elements in chain[] */
	u8 stack[NATIVE_WINDOW];
	u64 chain[NATIVE_CHAIN]; /* only `links` elements are sent; chain[0] is the link that bp points to */
};
