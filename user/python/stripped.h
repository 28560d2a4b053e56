/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds a CPython without symbols in an ELF file, which is untrusted. */
#pragma once

#include "elf/elf.h"

struct stripped {
	u64 runtime, code_type; /* addresses of _PyRuntime and PyCode_Type in the file */
	u32 version; /* 0x030b: 3.11; 0: that of _Py_DebugOffsets */
};

/* May the file contain a CPython? */
bool stripped__is_cpython(struct elf *elf);
/* false: _PyRuntime or PyCode_Type was not found. */
bool stripped__find(struct elf *elf, struct stripped *out);
