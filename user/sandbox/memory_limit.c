// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sandbox/memory_limit.h"

#include <stdio.h>
#include <sys/resource.h>

#include "util/sanitizer.h"
#include "util/test_switch.h"

/* The summary of a recording of 175 MB takes 11 times that: it joins all events. */
#define BYTES_OF_FILE 64
#define BYTES_MIN     (1ULL << 30) /* that any file may take, as far as the machine has it */
#define BYTES_LEAST   (256ULL << 20) /* on a machine with less than that available, too: it may swap */
#define BYTES_TEST    (8ULL << 20)

static u64 limit;
static bool is_machines; /* it is what the machine has available */

/* 0: not known */
static u64 available_bytes(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kib = 0;
	char line[128];

	while (f && !kib && fgets(line, sizeof(line), f))
		sscanf(line, "MemAvailable: %llu kB", &kib);
	if (f)
		fclose(f);
	return kib << 10;
}

void memory_limit__set(u64 file_bytes)
{
	u64 available = available_bytes() / 4 * 3;
	struct rlimit data;

	if (SANITIZED || getrlimit(RLIMIT_DATA, &data))
		return;
	limit = file_bytes < 1ULL << 50 ? BYTES_MIN + BYTES_OF_FILE * file_bytes : ~0ULL;
	is_machines = available && limit > available;
	if (is_machines)
		limit = available > BYTES_LEAST ? available : BYTES_LEAST;
	if (test_switch__is_set("small-memory")) {
		limit = BYTES_TEST;
		is_machines = false;
	}
	if (limit > data.rlim_cur)
		limit = data.rlim_cur;
	data.rlim_cur = limit;
	if (setrlimit(RLIMIT_DATA, &data))
		limit = 0;
}

u64 memory_limit__bytes(void)
{
	return limit;
}

bool memory_limit__is_machines(void)
{
	return is_machines;
}
