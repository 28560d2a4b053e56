/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * May a probe be put at an offset of a file? Only if the file's own tables show that an instruction begins there: a
 * breakpoint in the middle of an instruction would change what the program computes, in every process that maps the
 * file.
 */
#pragma once

#include "core/types.h"

enum site_verdict {
	SITE_OK,
	SITE_UNREADABLE, /* not an ELF file of this machine, or damaged */
	SITE_NO_CODE, /* in no executable segment */
	SITE_NO_START, /* no table has the start of the code around it */
	SITE_INSIDE, /* in the middle of an instruction */
	SITE_NO_RETURN, /* for a return probe: the return address is not on top of the stack there */
	SITE_VERDICTS,
};

struct site_checker;

/* fd stays the caller's. NULL: not an ELF file of this machine, or no memory. */
struct site_checker *site_checker__new(int fd);
void site_checker__free(struct site_checker *c);
/*
 * Fills verdicts (enum site_verdict) for n offsets in the file. A site is valid if linear decoding reaches it from a
 * function start, which .eh_frame or a FUNC symbol in the file's own tables has. returns: the return will be probed,
 * too, for which the kernel replaces the top of the stack.
 */
void site_checker__check(struct site_checker *c, const u64 *offsets, u32 n, bool returns, u8 *verdicts);

/* "it is in the middle of an instruction" */
const char *site_verdict__text(u32 verdict);
