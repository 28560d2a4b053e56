/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * May a probe be put at an offset of a file? Only where the file's own tables say that an instruction begins: a
 * breakpoint in the middle of one changes what the program computes, in every process that maps the file.
 */
#ifndef SONDE_SITE_VERIFY_SITE_H
#define SONDE_SITE_VERIFY_SITE_H

#include "core/types.h"

enum site_verdict {
	SITE_OK,
	SITE_UNREADABLE, /* no ELF file of this machine, or damaged */
	SITE_NO_CODE, /* no executable segment has it */
	SITE_NO_START, /* no table says where the code around it begins */
	SITE_INSIDE, /* in the middle of an instruction */
	SITE_NO_RETURN, /* for a return probe: the return address is not on top of the stack there */
	SITE_VERDICTS,
};

struct site_checker;

/* fd stays the caller's. NULL: no ELF file of this machine, or no memory. */
struct site_checker *site_checker__new(int fd);
void site_checker__free(struct site_checker *c);
/*
 * Fills verdicts (enum site_verdict) for n offsets in the file. What counts is a function's start by .eh_frame or a
 * symbol of type FUNC in the file's own tables, and what a linear decoding from there reaches. returns: also the return will
 * be probed, for which the kernel replaces the word on top of the stack.
 */
void site_checker__check(struct site_checker *c, const u64 *offsets, u32 n, bool returns, u8 *verdicts);

/* "it is in the middle of an instruction" */
const char *site_verdict__text(u32 verdict);

#endif
