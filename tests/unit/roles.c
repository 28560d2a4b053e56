// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Each kind of event has its role (enum event_role), which for one of a moment is the default only if it is listed
 * here.
 */
#include <string.h>

#include "kernel/embedded.h"
#include "test.h"
#include "util/array.h"

static bool is_of_a_series(const char *kind)
{
	static const char *const kinds[] = {
		"syscall_short", "sample_clock", "gpu_memory",	 "gpu_pool",	  "gpu_dropped",
		"torch_alloc",	 "torch_shape",	 "torch_module", "torch_phase",	  "functions_dropped",
		"nvtx_mark",	 "nvtx_counter", "nvtx_dropped", "torch_dropped",
	};

	for (u32 i = 0; i < ARRAY_LEN(kinds); i++)
		if (!strcmp(kind, kinds[i]))
			return true;
	return false;
}

TEST(kinds_of_a_moment_have_a_role)
{
	struct embedded e = {};
	char err[256];

	REQUIRE(!embedded__open(&e, err, sizeof(err)));
	for (u32 i = 0; i < e.schema->n_events; i++) {
		const struct schema_event *kind = &e.schema->events[i];

		if (!CHECK((kind->role == EVENT_CHANGES) == is_of_a_series(kind->name)))
			printf("# %s\n", kind->name);
	}
	embedded__close(&e);
}

TEST_MAIN()
