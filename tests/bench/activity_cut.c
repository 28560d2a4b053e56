// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The cost of splitting a thread's time by its calls: activity_cut [CALLS], with that many short calls within a long
 * one. The thread is off its CPU in each.
 */
#include <time.h>

#include "../unit/trace_made.h"
#include "model/waits.h"

#define FIELD(name, size, offset) \
	"{\"name\":\"" name "\",\"type\":\"unsigned\",\"size\":" #size ",\"offset\":" #offset "}"

static const char schema_json[] =
	"{\"families\":[{\"id\":0,\"name\":\"core\",\"doc\":\"\",\"default\":true}],\"options\":[],\"enums\":[],\"events\":["
	"{\"id\":769,\"name\":\"cuda_sync\",\"doc\":\"\",\"size\":32,\"fields\":["
	"{\"name\":\"time\",\"type\":\"unsigned\",\"size\":8,\"offset\":0,\"unit\":\"ns\"}," FIELD("pid", 4, 8) "," FIELD(
		"tid", 4,
		12) "," FIELD("id", 2,
			      16) "," FIELD("probe", 2,
					    18) "," FIELD("cpu", 2,
							  20) "," FIELD("flags", 2,
									22) ","
									    "{\"name\":\"start\",\"type\":\"unsigned\",\"size\":8,\"offset\":24,\"unit\":\"ns\"}]}]}";

struct record {
	u64 time;
	u32 pid, tid;
	u16 id, probe, cpu, flags;
	u64 start;
};

static u64 now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000ull + (u64)t.tv_nsec;
}

static int feed(const struct rows *rows, void *arg)
{
	return waits__feed(arg, rows);
}

static int count(const struct wait_part *p, void *arg)
{
	++*(u64 *)arg;
	return 0;
}

static struct record *make(u32 n)
{
	struct record *records = calloc(n + 1, sizeof(*records));

	for (u32 i = 0; records && i < n; i++)
		records[i] = (struct record){
			.start = 1000 + 100ull * i, .time = 1050 + 100ull * i, .pid = 1, .tid = 1, .id = 769
		};
	if (records)
		records[n] = (struct record){ .start = 900, .time = 2000 + 100ull * n, .pid = 1, .tid = 1, .id = 769 };
	return records;
}

int main(int argc, char **argv)
{
	u32 n = argc > 1 ? (u32)atoi(argv[1]) : 20000;
	struct record *records = make(n);
	struct trace_filter filter = { 0 };
	struct made_trace made;
	struct waits *w = NULL;
	struct thread_waits *t;
	u64 began, parts = 0;
	int err;

	if (!records || !made_trace__of(&made, schema_json, records, sizeof(*records), n + 1) ||
	    waits__new(&w, trace__schema(made.trace), made.names, NULL, false))
		return 1;
	filter.kinds = waits__kinds(w);
	err = trace__read(made.trace, &filter, feed, w);
	began = now();
	t = waits__thread(w, 1, 1);
	for (u32 i = 0; !err && i < n; i++)
		err = waits__explain(w, t, false, 1000 + 100ull * i, 1100 + 100ull * i, count, &parts);
	printf("%u calls within one: %llu parts in %.1f ms, %.0f ns each\n", n, parts, (double)(now() - began) / 1e6,
	       (double)(now() - began) / (double)n);
	waits__free(w);
	made_trace__free(&made);
	free(records);
	return err != 0;
}
