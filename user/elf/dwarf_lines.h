/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lines of source code, from the DWARF of an ELF file. libdw trusts what a file says: call this in a child process
 * without privileges (see dwarf.h).
 */
#pragma once

#include "elf/elf.h"

struct dwarf_lines;

struct dwarf_line {
	char file[256]; /* source file, as the compiler named it; of a long path its end */
	u32 line; /* 0: not known */
};

/* fd stays the caller's and must outlive it. Returns 0, -ENODATA (no DWARF) or -ENOMEM. */
int dwarf_lines__new(struct dwarf_lines **out, int fd);
void dwarf_lines__free(struct dwarf_lines *l);
/*
 * Finds the line at a file address. In code that was inlined into a function it is that function's own line, which
 * made the call, since stacks have functions that were not inlined.
 */
void dwarf_lines__at(struct dwarf_lines *l, u64 address, struct dwarf_line *out);
