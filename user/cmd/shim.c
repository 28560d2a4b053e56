// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/cmd.h"
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
	/* cuInit, or the first call of NVTX, loads the library that it names; NULL: the dynamic loader does */
	const char *variable;
	const char *records; /* what there will not be without the library */
} needs_of[] = { { "gpu", "CUDA_INJECTION64_PATH", "device times" },
		 { "nvtx", "NVTX_INJECTION64_PATH", "ranges of NVTX" },
		 { "functions", NULL, "calls of Python functions" },
		 /* by its option shim alone: record_options__shim_needs() */
		 { "", NULL, "calls of PyTorch" } };

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

unsigned int shim__check_environment(unsigned int needs)
{
	const char *const others[] = { secure_getenv("CUDA_INJECTION64_PATH"), secure_getenv("NVTX_INJECTION64_PATH") };

	for (unsigned int i = 0; i < ARRAY_LEN(others); i++) {
		if (!(needs >> i & 1) || !others[i] || !*others[i])
			continue;
		cmd__error("%s is set already, to %s: there will be no %s", needs_of[i].variable, others[i],
			   needs_of[i].records);
		needs &= ~(1U << i);
	}
	return needs;
}

const char *shim__records(unsigned int needs)
{
	return needs_of[needs ? __builtin_ctz(needs) : 0].records;
}

/* Before the libraries that a user lets the program load */
static void preload(const char *path)
{
	const char *others = secure_getenv("LD_PRELOAD");
	char *both = NULL;

	if (asprintf(&both, "%s%s%s", path, others ? ":" : "", others ? others : "") < 0)
		return;
	setenv("LD_PRELOAD", both, 1);
	free(both);
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

void shim__set_environment(const char *path, unsigned int needs, const char *functions)
{
	for (unsigned int i = 0; i < ARRAY_LEN(needs_of); i++)
		if (needs >> i & 1 && needs_of[i].variable)
			setenv(needs_of[i].variable, path, 1);
	if (functions) {
		char pid[32];

		snprintf(pid, sizeof(pid), "%d", getpid());
		/* only the command itself waits for the probes */
		setenv("SONDE_FUNCTIONS_PID", pid, 1);
	}
	if (functions || needs & SHIM_NEED_TORCH) {
		setenv("SONDE_FUNCTIONS", functions ? functions : "", 1);
		preload(path);
	}
	/* a user may have set another time */
	setenv("SONDE_CUPTI_WAIT", WAIT_MS, 0);
}
