// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Allocations of GPU memory of synthetic traces: each has the call that made it, and releases have the size. */
#include "gpu_support.h"
#include "test.h"

#define MOST 20

static struct gpu_allocation allocations[MOST];
static u32 n_allocations;
static struct gpu_coverage reported;

static int on_allocation(const struct gpu_allocation *a, void *arg)
{
	if (n_allocations == MOST)
		return -1;
	allocations[n_allocations++] = *a;
	return 0;
}

static const struct gpu_listener listener = { .allocation = on_allocation };

TEST(attributes_allocations)
{
	struct made g;

	REQUIRE(made__begin(&g));
	ADD(&g, gpu_clock, .event = EVENT_AT(1, 0, 2000), .clock = { .error = 100 });
	for (u32 i = 0; i < 3; i++) {
		u64 at = 10000 * (i + 1);

		ADD(&g, cuda_alloc, .call = CALL_AT(1, 2 + i, at, at + 2000), .address = 0xa000, .bytes = 64 + i,
		    .stack = 8 + i);
		ADD(&g, gpu_memory, .event = EVENT_AT(1, 0, at + 1000),
		    .allocation = { .address = 0xa000,
				    .bytes = 64 + i,
				    .operation = GPU_MEMORY_ALLOCATE,
				    .memory = GPU_MEMORY_DEVICE });
		ADD(&g, cuda_free, .call = CALL_AT(1, 2 + i, at + 4000, at + 6000), .address = 0xa000);
		ADD(&g, gpu_memory, .event = EVENT_AT(1, 0, at + 5000),
		    .allocation = { .address = 0xa000, .bytes = 64 + i, .operation = GPU_MEMORY_RELEASE });
	}
	ADD(&g, gpu_memory, .event = EVENT_AT(1, 0, 50000),
	    .allocation = { .address = 0xb000, .bytes = 64, .operation = GPU_MEMORY_RELEASE });
	/* no shim */
	ADD(&g, cuda_alloc, .call = CALL_AT(7, 7, 60000, 61000), .address = 0xc000, .bytes = 32,
	    .memory = CUDA_MEMORY_HOST);
	ADD(&g, cuda_free, .call = CALL_AT(7, 7, 62000, 63000), .address = 0xc000);
	/* physical memory has a handle and names its device */
	ADD(&g, cudadrv_alloc, .call = CALL_AT(7, 7, 64000, 65000), .address = 0x5, .bytes = 2 << 20,
	    .memory = CUDA_MEMORY_PHYSICAL, .device = 3);
	REQUIRE(made__open(&g));
	REQUIRE(!gpu_model__read(g.model, 0, 0, NULL, &listener, NULL, &reported) && n_allocations == 10);
	CHECK(allocations[9].device == 3 && allocations[9].memory == GPU_MEMORY_DEVICE &&
	      allocations[9].bytes == 2 << 20);
	for (u32 i = 0; i < 6; i++)
		CHECK(allocations[i].tid == 2 + i / 2 && allocations[i].bytes == 64 + i / 2 &&
		      allocations[i].release == (i & 1) && allocations[i].stack == (i & 1 ? 0 : 8 + i / 2));
	CHECK(!allocations[6].bytes && !allocations[6].tid);
	CHECK(allocations[7].host_time && allocations[7].memory == GPU_MEMORY_PINNED && allocations[7].bytes == 32);
	CHECK(allocations[8].release && allocations[8].bytes == 32 && allocations[8].memory == GPU_MEMORY_PINNED);
	CHECK(reported.allocations == 10);
	made__end(&g);
}

TEST_MAIN()
