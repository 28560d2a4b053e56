// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/shim.h"
#include "util/array.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/section.h"

#define WAIT_MS "300" /* cuInit, or NVTX, waits at most this long for probes in the library; usually a few ms */

static const struct {
	const char *family;
	const char *variable; /* cuInit, or the first call of NVTX, loads the library that it names */
} needs_of[] = { { "gpu", "CUDA_INJECTION64_PATH" }, { "nvtx", "NVTX_INJECTION64_PATH" } };

unsigned int shim__needs(const char *families)
{
	unsigned int needs = 0;
	char name[64];

	while (families && section__next_function(&families, name, sizeof(name)))
		for (unsigned int i = 0; i < ARRAY_LEN(needs_of); i++)
			if (!strcmp(name + (*name == '+'), needs_of[i].family))
				needs |= 1U << i;
	return needs;
}

const char *shim__variable(enum shim_need need)
{
	return needs_of[need == SHIM_NEED_NVTX].variable;
}

const char *shim__other_library(enum shim_need need)
{
	const char *other = need == SHIM_NEED_NVTX ? secure_getenv("NVTX_INJECTION64_PATH") :
						     secure_getenv("CUDA_INJECTION64_PATH");

	return other && *other ? other : NULL;
}

int shim__find(char *path, size_t size)
{
	static const char *const places[] = { "%s/libsonde-cupti.so", "%s/../lib/sonde/libsonde-cupti.so" };
	char exe[PATH_MAX], try[PATH_MAX + 64], real[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n <= 0)
		return -ENOENT;
	exe[n] = '\0';
	*strrchr(exe, '/') = '\0';
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		snprintf(try, sizeof(try), places[i], exe);
		if (!realpath(try, real) || strlen(real) >= size)
			continue;
		strcpy(path, real);
		return 0;
	}
	return -ENOENT;
}

void shim__set_environment(const char *path, unsigned int needs)
{
	for (unsigned int i = 0; i < ARRAY_LEN(needs_of); i++)
		if (needs >> i & 1)
			setenv(needs_of[i].variable, path, 1);
	/* a user may have set another time */
	setenv("SONDE_CUPTI_WAIT", WAIT_MS, 0);
}
