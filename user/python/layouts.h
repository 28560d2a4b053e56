/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How a CPython's structs are laid out, found in its ELF file; untrusted. */
#ifndef SONDE_PYTHON_LAYOUTS_H
#define SONDE_PYTHON_LAYOUTS_H

#include "core/python.h"
#include "elf/elf.h"

struct python_runtime {
	struct python_layout layout;
	u64 runtime; /* _PyRuntime, an address of the file's */
	u64 code_type; /* PyCode_Type */
};

/*
 * 0; -ENOENT: not CPython; -ENOTSUP: a CPython that can't be walked; why (of size len) is a text that continues
 * "Python stacks are not walked: ".
 */
int python__identify(struct elf *elf, struct python_runtime *out, char *why, size_t len);
#define PYTHON_OFFSET_WORDS 93 /* the number of _Py_DebugOffsets's words that are read */
/*
 * By the words of _Py_DebugOffsets (3.13 on), n of them. 0 or -ENOTSUP with a reason. For python__identify and tests.
 */
int python__layout_of_offsets(const u64 *words, u32 n, struct python_layout *out, char *why, size_t len);

#endif
