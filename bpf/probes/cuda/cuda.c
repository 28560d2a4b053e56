// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Recognizes a CUDA runtime that is linked statically into a program whose symbols were stripped. */
#include "record/family.h"

#include <stdio.h>

#include "core/meta.h"

/*
 * True if the file has device code (.nv_fatbin) and the runtime's own texts, but does not use the shared runtime.
 * Only files with device code are searched for the texts, because searching every stripped file of the machine would
 * take too long.
 */
static bool hides_library(struct elf *elf, char *why, size_t len)
{
	if (!elf__section_holds(elf, ".nv_fatbin", "") || elf__needs(elf, "libcudart.so") ||
	    !elf__section_holds(elf, ".rodata", "cudaErrorCudartUnloading"))
		return false;
	snprintf(why, len, WHY_HIDDEN_CUDART ": its calls are recorded only with its debug file");
	return true;
}

FAMILY_HOST(cuda_host) = {
	.name = "cuda",
	.toggles = true,
	.python_option = "stacks",
	.hides_library = hides_library,
	.covered_by = "cudadrv",
};
