/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the function at an address of a process: from mappings and the files' symbols; writes the trace's events
 * meta_code.
 */
#pragma once

#include "elf/dwarf_lines.h"
#include "elf/elf.h"
#include "record/family.h"
#include "record/stacks/native.h"
#include "record/tables.h"

struct native_code;

struct native_place {
	u32 code; /* id of the function in the trace */
	u64 offset; /* in the file, or the address if there is no file */
	u32 line; /* in the function's source file; 0: not known */
	struct {
		u32 code, line;
	} inlined[DWARF_INLINED]; /* functions that were inlined there, outermost first */
	u32 n_inlined;
	bool mapped; /* the address is in a code mapping */
	bool named;
	bool is_unread; /* the file can't be opened any more, as its process has ended: the function has no name */
	u8 interpreter; /* enum interpreter_code */
	bool python_call; /* see struct code_place */
	bool is_runtime; /* in a file with the loop of an interpreter, or in its standard library */
	bool starts; /* in libc or the loader: such frames at the outer end start the program or thread */
	int unwind_error;
	struct elf_unwind unwind;
};

struct native_code *native_code__new(struct session *s);
void native_code__free(struct native_code *n);
void native_code__mapped(struct native_code *n, const struct mapping *m);
/* after_call: pc is a return address, and the call is before it. */
void native_code__at(struct native_code *n, const struct native_thread *t, u64 pc, bool after_call,
		     struct native_place *out);
/* Returns the id of the function that represents frames that could not be found. */
u32 native_code__missing(struct native_code *n);
void native_code__tick(struct native_code *n, u64 now);
/* Names the code of JIT compilers when the recording ends, as this code and its names are made meanwhile. */
void native_code__finish(struct native_code *n);
/* Closes all files and frees caches. */
void native_code__trim(struct native_code *n);
void native_code__sizes(const struct native_code *n, table_size_fn *fn, void *arg);
