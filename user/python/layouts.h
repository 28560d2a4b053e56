/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds how the structs of a CPython are laid out, from its ELF file, which is untrusted. */
#pragma once

#include "core/python.h"
#include "elf/elf.h"

struct python_runtime {
	struct python_layout layout;
	u64 runtime; /* address of _PyRuntime in the file */
	u64 code_type; /* address of PyCode_Type in the file */
};

/* Does the file contain a CPython? */
bool python__is_cpython(struct elf *elf);
/*
 * Returns 0; -ENOENT: the file is not a CPython; -ENOTSUP: it is one whose stacks can't be walked, and why (of size
 * len) is a text that continues "Python stacks are not walked: ".
 */
int python__identify(struct elf *elf, struct python_runtime *out, char *why, size_t len);
#define PYTHON_OFFSET_WORDS 93 /* the number of 8-byte words of _Py_DebugOffsets that are read */
/*
 * Fills the layout from the first n words of _Py_DebugOffsets (3.13 and later). Returns 0, or -ENOTSUP with a reason.
 * For python__identify and tests.
 */
int python__layout_of_offsets(const u64 *words, u32 n, struct python_layout *out, char *why, size_t len);
