// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report memory: random allocations, compared with a plain list. */
#include "gpu_support.h"
#include "model/memory_sums.h"
#include "random.h"
#include "test.h"

#define BASE   50000000000ull
#define PID    100u
#define TID    105u
#define BLOCKS 40u

static void check_random_memory(u32 number)
{
	u64 bytes[BLOCKS] = { 0 }, live[2] = { 0 }, peak[2] = { 0 }, peak_time[2] = { 0 };
	u64 at_peak[2][4] = { { 0 } }, by_stack[2][4] = { { 0 } };
	u32 stacks[BLOCKS];
	struct memory_sums m;
	struct query args;
	struct made made;

	seed = number;
	REQUIRE(made__begin(&made));
	for (u32 i = 0; i < 400; i++) {
		u32 b = pick(BLOCKS), d = b % 2;
		u64 at = BASE + 1000 * i, address = 0x1000 * (b + 1);
		bool release = bytes[b] != 0;

		if (!release) {
			bytes[b] = 1 + pick(5000);
			stacks[b] = pick(4);
		}
		ADD(&made, gpu_memory, .event = EVENT_AT(PID, 0, at),
		    .allocation = { .address = address,
				    .bytes = release ? 0 : bytes[b],
				    .device = d,
				    .operation = release ? GPU_MEMORY_RELEASE : GPU_MEMORY_ALLOCATE,
				    .memory = GPU_MEMORY_DEVICE });
		if (release)
			ADD(&made, cuda_free, .call = CALL_AT(PID, TID, at - 100, at + 100), .address = address);
		else
			ADD(&made, cuda_alloc, .call = CALL_AT(PID, TID, at - 100, at + 100), .address = address,
			    .bytes = bytes[b], .stack = stacks[b]);
		live[d] += release ? -bytes[b] : bytes[b];
		by_stack[d][stacks[b]] += release ? -bytes[b] : bytes[b];
		if (release)
			bytes[b] = 0;
		if (live[d] <= peak[d])
			continue;
		peak[d] = live[d];
		peak_time[d] = at;
		memcpy(at_peak[d], by_stack[d], sizeof(at_peak[d]));
	}
	/* freed, and allocated before the trace */
	ADD(&made, gpu_memory, .event = EVENT_AT(PID, 0, BASE + 900000),
	    .allocation = { .address = 0x999000, .operation = GPU_MEMORY_RELEASE, .memory = GPU_MEMORY_DEVICE });
	REQUIRE(made__open(&made));
	args = (struct query){ .trace = made.trace, .names = made.names, .start = BASE };
	CHECK(!memory_sums__read(&m, &args));
	CHECK(m.sums.n == 2 && m.unseen == 1 && !m.failed);
	MAP_EACH_ENTRY(const struct memory_sum *s, const struct memory_key *k, &m.sums) {
		CHECK(k->pid == PID && k->where == MEMORY_ON_DEVICE && s->live == live[k->device]);
		CHECK(s->peak == peak[k->device] && s->peak_time == peak_time[k->device]);
	}
	MAP_EACH_ENTRY(const struct memory_site *p, const struct memory_site_key *k, &m.sites) {
		u32 d = ((const struct memory_key *)map__key(&m.sums, k->sum))->device;

		CHECK(p->peak == at_peak[d][k->stack] && p->live == by_stack[d][k->stack]);
	}
	memory_sums__free(&m);
	made__end(&made);
}

TEST(memory_as_in_a_plain_list)
{
	for (u32 i = 1; i <= 10; i++)
		check_random_memory(i);
}

TEST_MAIN()
