// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Draws samples, and the stacks of slices. Perfetto identifies a frame by its mapping and its offset in it: Python's
 * frames have a mapping of their own, in which function and line form the offset.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "export/perfetto.h"

#define BUILD_ID_MAX 64 /* bytes */

/* InternedData */
enum { INTERNED_FRAMES = 6, INTERNED_CALLSTACKS = 7, INTERNED_MAPPINGS = 19 };
enum { MAPPING_IID = 1, MAPPING_BUILD_ID = 2, MAPPING_PATHS = 7 };
enum { FRAME_IID = 1, FRAME_FUNCTION = 2, FRAME_MAPPING = 3, FRAME_PC = 4, FRAME_SOURCE = 5, FRAME_LINE = 6 };
enum { CALLSTACK_IID = 1, CALLSTACK_FRAMES = 2 };
/* PerfSample */
enum { SAMPLE_CPU = 1, SAMPLE_PID = 2, SAMPLE_TID = 3, SAMPLE_CALLSTACK = 4, SAMPLE_MODE = 5, SAMPLE_COUNT = 6 };
enum { MODE_KERNEL = 1, MODE_USER = 2 };
/* TracePacketDefaults, PerfSampleDefaults, PerfEvents.Timebase */
enum { DEFAULTS_SAMPLES = 12, SAMPLES_TIMEBASE = 1, TIMEBASE_PERIOD = 1, TIMEBASE_COUNTER = 4, SW_CPU_CLOCK = 1 };

struct frame_key {
	u64 pc;
	const char *path;
	u32 code, line;
};

/* Loads the build ids of probed files; no other event has build ids. */
static int on_objects(const struct rows *rows, void *arg)
{
	struct perfetto *p = arg;

	ROWS_EACH(v, rows) {
		const char *path = names__string(p->e->names, (u32)view__get(&v, "path")), **id;
		u64 key = XXH64(path, strlen(path), 0);

		id = map__get(&p->build_ids, &key);
		if (!id)
			return -ENOMEM;
		*id = names__string(p->e->names, (u32)view__get(&v, "build_id"));
	}
	return 0;
}

int perfetto__open_stacks(struct perfetto *p)
{
	map__init(&p->mappings, sizeof(const char *), sizeof(struct interned));
	map__init(&p->frames, sizeof(struct frame_key), sizeof(struct interned));
	map__init(&p->callstacks, sizeof(u32), sizeof(struct interned));
	map__init(&p->build_ids, sizeof(u64), sizeof(const char *));
	return trace__read_kind(p->e->trace, "meta_object", on_objects, p);
}

void perfetto__free_stacks(struct perfetto *p)
{
	MAPS_FREE(&p->mappings, &p->frames, &p->callstacks, &p->build_ids);
}

/* Interns the bytes of a file's build id, by the address of its text; returns 0 if not known. */
static u64 build_id(struct perfetto *p, const char *path)
{
	u64 key = XXH64(path, strlen(path), 0);
	const char *const *hex = map__find(&p->build_ids, &key);
	char bytes[BUILD_ID_MAX];
	size_t n = 0;
	unsigned int byte;

	while (hex && n < sizeof(bytes) && sscanf(*hex + 2 * n, "%2x", &byte) == 1)
		bytes[n++] = (char)byte;
	return n ? perfetto__intern_by(p, INTERN_BUILD_ID, BY_ADDRESS, (u64)(uintptr_t)*hex, bytes, n) : 0;
}

static u64 mapping(struct perfetto *p, const char *path)
{
	bool must_emit;
	u64 number = perfetto__number(p, &p->mappings, &path, &must_emit), text, id;
	size_t at;

	if (must_emit) {
		text = perfetto__intern(p, INTERN_PATH, path, strlen(path));
		id = build_id(p, path);
		at = pb__begin(&p->interned, INTERNED_MAPPINGS);
		pb__int(&p->interned, MAPPING_IID, number);
		if (id)
			pb__int(&p->interned, MAPPING_BUILD_ID, id);
		pb__int(&p->interned, MAPPING_PATHS, text);
		pb__end(&p->interned, at);
	}
	return number;
}

static const char *path_of(const struct stack_frame *f)
{
	if (f->kind == FRAME_PYTHON)
		return "[python]";
	if (f->kind == FRAME_KERNEL)
		return "[kernel.kallsyms]";
	return *f->file ? f->file : "[unknown]";
}

static u64 put_frame(struct perfetto *p, const struct stack_frame *f)
{
	struct frame_key key = { .path = path_of(f), .code = f->code, .line = f->line };
	const char *file = stack_frame__source(f);
	u64 number, function, object, source = 0;
	const char *name = *f->name		   ? f->name :
			   f->kind == FRAME_CUT	   ? "[cut]" :
			   f->kind == FRAME_PYTHON ? "[unknown]" :
						     "";
	bool must_emit;
	size_t at;

	key.pc = f->kind == FRAME_PYTHON || !f->offset ? (u64)f->code << 24 | f->line : f->offset;
	number = perfetto__number(p, &p->frames, &key, &must_emit);
	if (!must_emit)
		return number;
	object = mapping(p, key.path);
	function = perfetto__intern(p, INTERN_FUNCTION, name, strlen(name));
	if ((f->kind == FRAME_PYTHON || f->line) && *file)
		source = perfetto__intern(p, INTERN_SOURCE, file, strlen(file));
	at = pb__begin(&p->interned, INTERNED_FRAMES);
	pb__int(&p->interned, FRAME_IID, number);
	pb__int(&p->interned, FRAME_FUNCTION, function);
	pb__int(&p->interned, FRAME_MAPPING, object);
	pb__int(&p->interned, FRAME_PC, key.pc);
	if (source)
		pb__int(&p->interned, FRAME_SOURCE, source);
	if (f->line)
		pb__int(&p->interned, FRAME_LINE, f->line);
	pb__end(&p->interned, at);
	return number;
}

u64 perfetto__callstack(struct perfetto *p, u32 stack)
{
	const struct stacks *s = p->e->stacks;
	u64 numbers[STACKS_DEEPEST];
	u32 ids[STACKS_DEEPEST], n;
	bool must_emit;
	u64 number;
	size_t at;

	if (!stacks__frame(s, stack))
		return 0;
	number = perfetto__number(p, &p->callstacks, &stack, &must_emit);
	if (!must_emit)
		return number;
	/* Frames are listed outermost first, and emitted before the callstack that refers to them. */
	n = stacks__path(s, stack, ids, STACKS_DEEPEST);
	for (u32 i = 0; i < n; i++)
		numbers[i] = put_frame(p, stacks__frame(s, ids[i]));
	at = pb__begin(&p->interned, INTERNED_CALLSTACKS);
	pb__int(&p->interned, CALLSTACK_IID, number);
	for (u32 i = 0; i < n; i++)
		pb__int(&p->interned, CALLSTACK_FRAMES, numbers[i]);
	pb__end(&p->interned, at);
	return number;
}

/* Declares the unit of samples: ns of CPU time. Emitted once per frame of the file. */
static void put_defaults(struct perfetto *p, u64 period)
{
	size_t defaults, samples, timebase;

	if (p->defaults_frame == p->frame)
		return;
	p->defaults_frame = p->frame;
	defaults = pb__begin(&p->packet, PACKET_DEFAULTS);
	samples = pb__begin(&p->packet, DEFAULTS_SAMPLES);
	timebase = pb__begin(&p->packet, SAMPLES_TIMEBASE);
	pb__int(&p->packet, TIMEBASE_PERIOD, period);
	pb__int(&p->packet, TIMEBASE_COUNTER, SW_CPU_CLOCK);
	pb__end(&p->packet, timebase);
	pb__end(&p->packet, samples);
	pb__end(&p->packet, defaults);
}

int perfetto__sample(struct perfetto *p, const struct view *v)
{
	const struct stack_frame *f;
	u32 stack = (u32)view__get(v, "stack");
	u64 period = (u64)view__get(v, "period"), callstack;
	size_t at;

	packet__begin(p, (u64)view__get(v, "time"));
	put_defaults(p, period ? period : 1);
	callstack = perfetto__callstack(p, stack);
	f = stacks__frame(p->e->stacks, stack);
	at = pb__begin(&p->packet, PACKET_PERF_SAMPLE);
	pb__int(&p->packet, SAMPLE_CPU, (u64)view__get(v, "cpu"));
	pb__int(&p->packet, SAMPLE_PID, names__number(p->e->names, (u32)view__get(v, "pid")));
	pb__int(&p->packet, SAMPLE_TID, names__number(p->e->names, (u32)view__get(v, "tid")));
	pb__int(&p->packet, SAMPLE_MODE, f && f->kind == FRAME_KERNEL ? MODE_KERNEL : MODE_USER);
	if (callstack)
		pb__int(&p->packet, SAMPLE_CALLSTACK, callstack);
	pb__end(&p->packet, at);
	packet__end(p, true);
	return 0;
}
