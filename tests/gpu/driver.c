// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "driver.h"
#include "truth.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct driver cu;

void driver__failed(const char *what, cu_result result)
{
	const char *name = NULL;
	char text[512];

	if (!cu.error_name || cu.error_name(result, &name))
		name = NULL;
	snprintf(text, sizeof(text), "%s: %s (%d)", what, name ? name : "an error", result);
	fprintf(stderr, "%s\n", text);
	truth__fact_text("error", text);
	truth__write();
	exit(3);
}

void driver__load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(4);
	}
#define CU_LOAD(required, ours, theirs, arguments)           \
	*(void **)&cu.ours = dlsym(library, #theirs);        \
	if (!cu.ours) {                                      \
		truth__fact_text("missing", #theirs);        \
		if (required) {                              \
			fprintf(stderr, "no %s\n", #theirs); \
			exit(4);                             \
		}                                            \
	}
	CU_FUNCTIONS(CU_LOAD)
	if (!cu.graph_kernel && !cu.graph_kernel_11) {
		fprintf(stderr, "no cuGraphAddKernelNode\n");
		exit(4);
	}
}
