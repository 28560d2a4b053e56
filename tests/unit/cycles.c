// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The time of each cycle of a schedule, from the events of its active phases. */
#include "model/cycles.h"
#include "probes/torch/torch.h"
#include "test.h"
#include "trace_made.h"

static const char schema[] =
	"{\"families\":[{\"id\":14,\"name\":\"torch\",\"doc\":\"\",\"default\":true}],\"options\":[],\"enums\":[],\"events\":["
	"{\"id\":3601,\"name\":\"torch_phase\",\"doc\":\"\",\"size\":56,\"fields\":["
	"{\"name\":\"time\",\"type\":\"unsigned\",\"size\":8,\"offset\":0,\"unit\":\"ns\"},"
	"{\"name\":\"pid\",\"type\":\"unsigned\",\"size\":4,\"offset\":8},"
	"{\"name\":\"tid\",\"type\":\"unsigned\",\"size\":4,\"offset\":12},"
	"{\"name\":\"id\",\"type\":\"unsigned\",\"size\":2,\"offset\":16},"
	"{\"name\":\"probe\",\"type\":\"unsigned\",\"size\":2,\"offset\":18},"
	"{\"name\":\"cpu\",\"type\":\"unsigned\",\"size\":2,\"offset\":20},"
	"{\"name\":\"flags\",\"type\":\"unsigned\",\"size\":2,\"offset\":22},"
	"{\"name\":\"step\",\"type\":\"unsigned\",\"size\":8,\"offset\":24},"
	"{\"name\":\"postponed\",\"type\":\"unsigned\",\"size\":8,\"offset\":32},"
	"{\"name\":\"since\",\"type\":\"unsigned\",\"size\":8,\"offset\":40},"
	"{\"name\":\"cycle\",\"type\":\"unsigned\",\"size\":4,\"offset\":48},"
	"{\"name\":\"phase\",\"type\":\"unsigned\",\"size\":4,\"offset\":52}]}]}";

static struct torch_phase phase(u32 pid, u64 time, enum step_phase phase, u32 cycle, u64 since)
{
	return (struct torch_phase){ .event = { .time = time, .pid = pid, .tid = pid, .id = ID_torch_phase },
				     .since = since,
				     .cycle = cycle,
				     .phase = phase };
}

static bool is_cycle(const struct cycles *c, u32 number, u64 from, u64 to)
{
	return number <= c->n && c->list[number - 1].from == from && c->list[number - 1].to == to;
}

TEST(first_step_is_active)
{
	struct torch_phase records[] = {
		phase(7, 200, STEP_IDLE, 1, 100), phase(7, 300, STEP_ACTIVE, 2, 0), phase(7, 400, STEP_IDLE, 2, 300),
		phase(8, 150, STEP_ACTIVE, 1, 0), phase(8, 250, STEP_IDLE, 1, 150),
	};
	struct made_trace made;
	struct cycles c;

	REQUIRE(made_trace__of(&made, schema, records, sizeof(*records), 5));
	REQUIRE(!cycles__load(&c, made.trace));
	CHECK(c.n == 2 && is_cycle(&c, 1, 100, 250) && is_cycle(&c, 2, 300, 400));
	cycles__free(&c);
	made_trace__free(&made);
}

/* The third cycle has only its end: it does not become a part of the first one, and the fourth keeps its number. */
TEST(lost_begin)
{
	struct torch_phase records[] = {
		phase(7, 100, STEP_ACTIVE, 1, 0), phase(7, 200, STEP_IDLE, 1, 100), phase(7, 600, STEP_IDLE, 3, 500),
		phase(7, 700, STEP_ACTIVE, 4, 0), phase(7, 800, STEP_IDLE, 4, 700),
	};
	struct made_trace made;
	struct cycles c;

	REQUIRE(made_trace__of(&made, schema, records, sizeof(*records), 5));
	REQUIRE(!cycles__load(&c, made.trace));
	CHECK(c.n == 4 && is_cycle(&c, 1, 100, 200) && is_cycle(&c, 4, 700, 800));
	CHECK(!c.list[1].to && !c.list[2].to);
	cycles__free(&c);
	made_trace__free(&made);
}

TEST_MAIN()
