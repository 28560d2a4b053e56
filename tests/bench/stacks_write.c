// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes a trace with many samples, for bench_export's stack formats.
 *
 *	stacks_write SAMPLES FRAMES FILE
 *
 * There are 8 threads of two processes. The frames are of 5,000 functions and form a tree with stacks of about 25
 * frames.
 */
#include <fcntl.h>

#include "../unit/stacks_support.h"

#define FUNCTIONS 5000

enum { ID_sample_cpu = 0x0c01 };

struct sample_cpu {
	struct event event;
	u64 period;
	u32 stack;
};

static void add_sample(struct cJSON *json)
{
	struct cJSON *f = support_event(cJSON_GetObjectItem(json, "events"), "sample_cpu", ID_sample_cpu,
					sizeof(struct sample_cpu), 0);

	MEMBER(f, struct sample_cpu, "unsigned", period, "unit", "ns");
	MEMBER(f, struct sample_cpu, "unsigned", stack, "unit", "stack");
}

static void put_stacks(struct stacks_file *f, u32 frames, u64 *seed)
{
	char name[32], file[64];

	for (u32 i = 1; i <= FUNCTIONS; i++) {
		snprintf(name, sizeof(name), "Class%u.method_%u", i % 300, i);
		snprintf(file, sizeof(file), "/srv/app/package/module_%u.py", i % 300);
		stacks_code(f, i, name, file, i % 1000);
	}
	/* the caller is one of the later two thirds */
	for (u32 i = 1; i <= frames; i++) {
		u32 back = (u32)(support_random(seed) % (i * 2 / 3 + 1)) + 1;

		stacks_frame(f, FRAME_PYTHON, i, i > back ? i - back : 0, 1 + (u32)(support_random(seed) % FUNCTIONS),
			     i % 1000);
	}
}

int main(int argc, char **argv)
{
	u32 samples = argc == 4 ? (u32)atoi(argv[1]) : 0, frames = argc == 4 ? (u32)atoi(argv[2]) : 0;
	struct stacks_file f = { .now = 1000000 };
	struct cJSON *json = stacks_json();
	u64 seed = 88172645463325252ULL;
	char err[256];

	add_sample(json);
	f.fd = frames ? open(argv[3], O_RDWR | O_CREAT | O_TRUNC, 0644) : -1;
	if (f.fd < 0 || schema__from_json(&f.schema, json, err, sizeof(err)) ||
	    trace_writer__create(&f.writer, f.fd, f.schema, &support_head))
		return 1;
	put_stacks(&f, frames, &seed);
	for (u32 i = 0; i < samples; i++) {
		struct sample_cpu s = {
			.event = { .time = f.now += 250000,
				   .pid = 100 + i % 2,
				   .tid = 100 + i % 8,
				   .cpu = i % 8,
				   .id = ID_sample_cpu },
			.period = 2000000,
			.stack = 1 + (u32)(support_random(&seed) % frames),
		};

		if (trace_writer__append(f.writer, &s, sizeof(s)))
			return 1;
		if (i % 4000 == 0)
			trace_writer__flush(f.writer);
	}
	return trace_writer__finish(f.writer) ? 1 : 0;
}
