/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * USDT probes of an ELF file: nops that the author has put into the code and described in notes (.note.stapsdt;
 * https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation). The file is untrusted.
 */
#pragma once

#include "elf/elf.h"

/* The location of a probe's argument when the probe is hit: a register, or memory at a register plus a displacement. */
struct usdt_arg {
	u8 size; /* bytes; 0: there is no argument, or its location has another form (a constant, an index, ..) */
	bool is_signed;
	bool memory;
	/* the number that instructions use: rax 0, rcx 1, rdx 2, rbx 3, rsp 4, rbp 5, rsi 6, rdi 7, r8 8 .. r15 15 */
	u8 reg;
	s16 displacement;
};

#define USDT_ARGS 4

struct usdt {
	const char *name; /* valid as long as the elf */
	u64 offset; /* in the file */
	u64 semaphore; /* offset in the file of the 16-bit counter of attached tracers; 0: none */
	struct usdt_arg args[USDT_ARGS];
};

/*
 * Calls fn for each probe of a provider. A non-zero result of fn ends the iteration and is returned. Invalid notes
 * are skipped.
 */
int usdt__each(struct elf *elf, const char *provider, int (*fn)(const struct usdt *probe, void *arg), void *arg);
/* Parses "-4@112(%rsp)" and the like, up to a blank; size 0 in out if the form is not supported. */
void usdt__parse_arg(const char *text, struct usdt_arg *out);
