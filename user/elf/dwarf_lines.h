/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lines of source code, from the DWARF of an ELF file. libdw trusts what a file says: call this in a child process
 * without privileges (see dwarf.h).
 */
#pragma once

#include "elf/elf.h"

struct dwarf_lines;

#define DWARF_INLINED 4

struct dwarf_line {
	char file[256]; /* source file, as the compiler named it; of a long path its end */
	u32 line; /* 0: not known */
};

struct dwarf_inlined {
	char name[192]; /* mangled, and cut if it is longer */
	struct dwarf_line line; /* that is executed */
};

struct dwarf_place {
	struct dwarf_line line; /* in the function that was compiled */
	/*
	 * Functions that were inlined there, outermost first; of more than these the innermost ones. Those of headers
	 * of the system are left out.
	 */
	struct dwarf_inlined inlined[DWARF_INLINED];
	u32 n_inlined;
};

/* fd stays the caller's and must outlive it. Returns 0, -ENODATA (no DWARF) or -ENOMEM. */
int dwarf_lines__new(struct dwarf_lines **out, int fd);
void dwarf_lines__free(struct dwarf_lines *l);
/* Finds the lines at a file address. */
void dwarf_lines__at(struct dwarf_lines *l, u64 address, struct dwarf_place *out);
