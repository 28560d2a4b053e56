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

#define INJECTION "CUDA_INJECTION64_PATH" /* the library that cuInit loads */
#define WAIT_MS	  "300" /* cuInit waits at most this long for probes in the library; usually a few ms */

bool shim__is_needed(const char *families)
{
	char name[64];

	while (families && section__next_function(&families, name, sizeof(name)))
		if (!strcmp(name + (*name == '+'), "gpu"))
			return true;
	return false;
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

void shim__set_environment(const char *path)
{
	setenv(INJECTION, path, 1);
	/* a user may have set another time */
	setenv("SONDE_CUPTI_WAIT", WAIT_MS, 0);
}
