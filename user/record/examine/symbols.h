/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The names and unwinding rules for the code addresses of a mapped file, for native stacks: a sorted table
 * built once per file. Names are read from the file when they are needed.
 */
#pragma once

#include "elf/dwarf_lines.h"
#include "elf/elf.h"

struct symbols;

struct code_place {
	const char *name; /* of the function; NULL: no symbol covers it */
	char text[320]; /* the name, which may be cut; "": it is not from a symbol */
	u64 function; /* file address of the function's start, or of the code itself if that is unknown */
	bool has_function; /* function is known, from a symbol or the unwind tables */
	u8 interpreter; /* enum interpreter_code */
	bool python_call; /* a function of CPython that calls such a loop */
	int unwind_error; /* 0: unwind is valid */
	struct elf_unwind unwind;
	struct dwarf_place source;
};

/* elf and fd, its file, must outlive it and stay the caller's. Returns 0 or -ENOMEM. */
int symbols__new(struct symbols **out, struct elf *elf, int fd);
void symbols__free(struct symbols *s);
/* Returns the approximate size in bytes. */
u64 symbols__bytes(const struct symbols *s);
/* Returns the code at an offset in the file, valid until the next call. NULL: it is not code, or no memory. */
const struct code_place *symbols__at(struct symbols *s, u64 offset);
