// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/gc_stack.h"

#include <string.h>

#include "util/array.h"
#include "util/path.h"

/* The compiler may append a suffix: "gc_collect_main.constprop.0". */
static bool is_name(const char *name)
{
	static const char *const names[] = {
		"collect",
		"gc_collect_main",
		"gc_collect_region",
		"gc_collect_young",
		"gc_collect_full",
		"gc_collect_increment",
		"gc_collect_internal",
		"gc_collect_generations",
		"gc_collect",
		"gc_collect_impl",
		"gc_collect_with_callback",
		"collect_generations",
		"PyGC_Collect",
		"_PyGC_Collect",
		"_PyGC_CollectNoFail",
		"_PyGC_CollectIfEnabled",
		"collect_with_callback",
	};
	size_t len = strcspn(name, ".");

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strlen(names[i]) == len && !strncmp(name, names[i], len))
			return true;
	return false;
}

bool gc_stack__is_collector(const struct stack_frame *f)
{
	return is_name(f->name) && path__is_interpreter(f->file);
}
