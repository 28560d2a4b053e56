/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * USDT probes of an ELF file: nops that its author has put into the code and described in notes (.note.stapsdt;
 * https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation). The file is untrusted.
 */
#ifndef SONDE_ELF_USDT_H
#define SONDE_ELF_USDT_H

#include "elf/elf.h"

/* Where a probe's argument is when it is hit: a register, or memory at a register plus a displacement. */
struct usdt_arg {
	u8 size; /* bytes, 0: there is none, or it is somewhere else (a constant, an index, ..) */
	bool is_signed;
	bool memory;
	u8 reg; /* as instructions number them: rax 0, rcx 1, rdx 2, rbx 3, rsp 4, rbp 5, rsi 6, rdi 7, r8 8 .. r15 15 */
	s16 displacement;
};

#define USDT_ARGS 4

struct usdt {
	const char *name; /* live as long as the elf */
	u64 offset; /* in the file */
	u64 semaphore; /* offset in the file of the 16-bit counter of who listens, 0: none */
	struct usdt_arg args[USDT_ARGS];
};

/* Calls fn for each probe of a provider; fn returning non-zero ends it and is returned. What makes no sense is left out. */
int usdt__each(struct elf *elf, const char *provider, int (*fn)(const struct usdt *probe, void *arg), void *arg);
/* "-4@112(%rsp)" and the like, up to a blank; size 0 in out if it is none that is understood. */
void usdt__parse_arg(const char *text, struct usdt_arg *out);

#endif
