// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads any bytes as data of a Python process. First as records of frames and code objects (core/stack.h) from the
 * rings: a byte for the kind, two for the length, and the contents. Then as the memory in which `sonde dump` walks a
 * stack and reads asyncio's tasks, with the layout of each version.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/stack.h"
#include "fuzz.h"
#include "python/tasks.h"
#include "record/drain/losses.h"
#include "record/parts.h"
#include "record/stacks/stacks.h"

static struct embedded embedded;

static void take_records(struct session *s, const uint8_t *data, size_t size)
{
	while (size >= 3) {
		size_t len = data[1] | (data[2] & 7) << 8;
		union {
			struct event event;
			struct raw_frame frame;
			struct raw_code code;
			u8 bytes[2048];
		} r = {};

		data += 3;
		size -= 3;
		len = len < size ? len : size;
		memcpy(r.bytes, data, len);
		data += len;
		size -= len;
		/* native frames need a process's mappings, and these an attacher */
		if (!(data[-1] & 1) && r.frame.kind == FRAME_NATIVE)
			r.frame.kind = FRAME_PYTHON;
		r.event.id = data[-1] & 1 ? RAW_CODE : RAW_FRAME;
		if (len >= sizeof(struct event))
			stack_records__record(s, &r, len);
	}
	stack_records__finish(s);
}

static void records(const uint8_t *data, size_t size)
{
	static const struct session_args args = {};
	static const struct trace_head head = {};
	static struct trace_writer *writer;
	static struct session s;
	static u32 inputs;

	/* created once, as that takes far longer than an input; it writes nowhere (-1) */
	if (inputs++ % 1000 == 0) {
		trace_writer__free(writer);
		if (trace_writer__create(&writer, -1, embedded.schema, &head))
			abort();
	}
	memset(&s, 0, sizeof(s));
	s.args = &args;
	s.embedded.schema = embedded.schema;
	s.writer = writer;
	s.stacks = stack_records__new();
	if (s.stacks && !losses__new(&s))
		take_records(&s, data, size);
	losses__free(s.losses);
	stack_records__free(s.stacks);
}

static void memory(const uint8_t *data, size_t size)
{
	struct snapshot_thread thread = { .state = data[0] * 8 };
	struct tasks *tasks;
	struct snapshot l = { .pid = 1, .mem = memfd_create("memory", MFD_CLOEXEC) };

	if (l.mem < 0 || write(l.mem, data, size) != (ssize_t)size)
		abort();
	/* from 3.13 on the layout comes from the process */
	memcpy(&l.layout, data + 1, sizeof(l.layout));
	l.layout.version = 0x0308 + data[1] % 8;
	l.code_type = data[2] * 8;
	map__init(&l.codes, sizeof(u64), sizeof(struct snapshot_code));
	snapshot__stack(&l, &thread);
	for (u32 i = 0; i < thread.n_frames; i++)
		fuzz__use(thread.frames[i].line + (thread.frames[i].name ? strlen(thread.frames[i].name) : 0));
	free(thread.frames);
	tasks = calloc(1, sizeof(*tasks));
	if (!tasks)
		abort();
	tasks->has_all = data[3] & 1;
	map__init(&l.types, sizeof(u64), sizeof(u8));
	/* the second time without the way to the set, whose types an input hardly has */
	snapshot__tasks(&l, tasks);
	tasks->set = data[3] * 8;
	snapshot__tasks(&l, tasks);
	for (u32 i = 0; i < tasks->n; i++)
		if (tasks->groups[i].stack.n)
			fuzz__use(tasks->groups[i].stack.frames[0].line +
				  strlen(tasks->groups[i].stack.frames[0].name));
	tasks__free(tasks);
	snapshot__forget_objects(&l);
	close(l.mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char err[256];

	if (!embedded.schema && embedded__open(&embedded, err, sizeof(err)))
		abort();
	if (size)
		records(data, size);
	if (size > 1 + sizeof(struct python_layout))
		memory(data, size);
	return 0;
}
