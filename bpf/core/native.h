/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread's native user stack on its way from BPF to the loader, which unwinds it
 * (user/record/native.c). It goes as what unwinding needs: the registers, the newest bytes
 * of the stack, for functions without frame pointers, and the chain of frame pointers, for
 * what lies further up.
 */
#ifndef SONDE_NATIVE_H
#define SONDE_NATIVE_H

#include "types.h"

#define NATIVE_WINDOW 1536 /* bytes */
#define NATIVE_CHAIN  256

/* A link of the chain: the return address beside the saved frame pointer, and how far the next one is, in words. */
#define NATIVE_ADDRESS(link)  ((link) & ((1ULL << 48) - 1))
#define NATIVE_DISTANCE(link) ((link) >> 48 << 3)

struct native_stack {
	u64 ip, sp, bp; /* 0: none could be taken */
	u32 window; /* bytes of stack[] that could be read */
	u32 links; /* in chain[] */
	u8 stack[NATIVE_WINDOW];
	u64 chain[NATIVE_CHAIN]; /* only `links` of them are sent; chain[0] is what bp points to */
};

#endif
