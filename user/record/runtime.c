// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Recognizes processes that sched, syscall and lock follow even without option `all`. */
#include "attach/library.h"
#include "python/layouts.h"
#include "record/family.h"
#include "util/array.h"

bool runtime__is_one(struct elf *elf, const char *path, bool hint)
{
	static const struct {
		const char *name, *function;
	} libraries[] = {
		{ "libcudart.so", "cudaMalloc" },
		{ "libcuda.so", "cuInit" },
		{ "libnccl.so", "ncclAllReduce" },
	};

	for (u32 i = 0; i < ARRAY_LEN(libraries); i++)
		if (library__is(elf, libraries[i].name, libraries[i].function))
			return true;
	return elf__provides(elf, "PyGILState_Ensure") || python__is_cpython(elf);
}
