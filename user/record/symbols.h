/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a mapped file's code addresses are called and how its functions are left, for
 * native stacks: a sorted table made once a file, and a cache of answers.
 */
#ifndef SONDE_RECORD_SYMBOLS_H
#define SONDE_RECORD_SYMBOLS_H

#include "elf/elf.h"

struct symbols;

struct code_place {
	const char *name; /* of the function; NULL: no symbol covers it. Lives as long as the symbols */
	u64 function; /* address of the function's start in the file; without one, the place itself */
	bool has_function; /* function is known, by a symbol or by the unwind tables */
	bool interpreter; /* a loop that runs Python's bytecode */
	bool python_call; /* a function of CPython's that calls such a loop */
	int unwind_error; /* 0: unwind is known */
	struct elf_unwind unwind;
};

/* elf must outlive it and stays the caller's. 0 or -ENOMEM. */
int symbols__new(struct symbols **out, struct elf *elf);
void symbols__free(struct symbols *s);
/* Bytes that it holds, about. */
u64 symbols__bytes(const struct symbols *s);
/*
 * The place at an offset in the file. NULL: no code of the file, or no memory. Valid until the
 * next call.
 */
const struct code_place *symbols__at(struct symbols *s, u64 offset);

#endif
