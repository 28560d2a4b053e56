// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sandbox/memory_limit.h"

#include <sys/resource.h>

#include "util/file.h"
#include "util/sanitizer.h"
#include "util/test_switch.h"

/* The summary of a recording of 175 MB needs 11 times its size, because it joins all events. */
#define BYTES_OF_FILE 64
#define BYTES_MIN     (1ULL << 30) /* minimum for any file, if the machine has that much */
#define BYTES_LEAST   (256ULL << 20) /* minimum on any machine: it may swap */
#define BYTES_TEST    (8ULL << 20)

static u64 limit;
static u64 before = RLIM_INFINITY; /* of RLIMIT_DATA, where `limit` is set */
static bool is_machines; /* the limit is what the machine has available */

/* 0: unknown */
static u64 available_bytes(void)
{
	unsigned long long kib = 0;

	file__scan("/proc/meminfo", 1, "MemAvailable: %llu kB", &kib);
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
	before = data.rlim_cur;
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

u64 memory_limit__inherited(void)
{
	struct rlimit data, addresses;
	u64 bytes = limit || getrlimit(RLIMIT_DATA, &data) ? before : data.rlim_cur;

	return !getrlimit(RLIMIT_AS, &addresses) && addresses.rlim_cur < bytes ? addresses.rlim_cur : bytes;
}
