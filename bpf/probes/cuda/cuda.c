// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How a CUDA runtime that is linked into a program is recognized after its symbols were stripped. */
#include "record/family.h"

#include <stdio.h>

/*
 * Device code (.nv_fatbin), no shared runtime, and the runtime's own texts. Only
 * programs with device code are looked into: of others the texts of every
 * stripped file on the machine would have to be read.
 */
static bool hides_library(struct elf *elf, char *why, size_t len)
{
	if (!elf__section_holds(elf, ".nv_fatbin", "") || elf__needs(elf, "libcudart.so") ||
	    !elf__section_holds(elf, ".rodata", "cudaErrorCudartUnloading"))
		return false;
	snprintf(
		why, len,
		"libcudart is linked into it and its symbols are stripped: its calls are seen only with its debug file");
	return true;
}

FAMILY_HOST(cuda_host) = {
	.name = "cuda",
	.python_option = "stacks",
	.hides_library = hides_library,
};
