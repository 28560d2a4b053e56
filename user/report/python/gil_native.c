// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds the C function in which a holder of the GIL was while other threads waited, by samples of the holder's thread
 * in the intervals of waiting that are attributed to it. These are attributed to the Python function in which the
 * holder dropped the GIL; a sample of its thread in another function is no evidence for that one and counts against
 * every name. A sample counts once, regardless of the number of waiting threads.
 */
#include "report/python/gil.h"
#include "util/array.h"
#include "probes/sample/sample.h"
#include "util/compare.h"
#include "util/path.h"
#include "util/search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Limit for stored samples (64 MiB). */
#define SAMPLES_MAX (1u << 22)
#define NATIVE_NAME 256

struct gil_sample {
	u64 time; /* ns */
	u32 tid;
	u32 native; /* index in names plus one, 0: in Python code itself */
	u32 function; /* the user's function that called it: code, else frame, as in struct gil_side */
	u32 period_us; /* the CPU time that the sample represents */
	u32 counted; /* the side that it was counted for, plus one; 0: none yet */
};

/* What a sample's stack shows. */
struct place {
	u32 function; /* as in struct gil_sample */
	u32 native;
	bool is_known; /* the stack shows where the thread was */
	bool is_set;
};

struct gil_native_name {
	char text[NATIVE_NAME];
};

struct gil_native_key {
	u32 side; /* holder: index in struct gil_blame.sides */
	u32 native; /* as in struct gil_sample */
};

/* The samples of a holder. */
struct gil_native_sum {
	double total, main_ns; /* CPU time of the samples; of the function that has most of it */
	u32 native; /* the function that has most of it, as in struct gil_sample */
	u32 n; /* samples */
};

/* Returns the innermost Python frame or frame of a mapped file, skipping the kernel and the vdso; 0: not known. */
static u32 innermost(const struct stacks *s, u32 stack)
{
	const struct stack_frame *f;

	for (; (f = stacks__frame(s, stack)) != NULL; stack = f->caller) {
		if (f->kind == FRAME_CUT)
			return 0;
		if (f->kind == FRAME_PYTHON || (f->kind == FRAME_NATIVE && *f->file))
			return stack;
	}
	return 0;
}

/*
 * Returns the frame by which a thread's position is named: of the native frames below the innermost Python function,
 * the innermost of the library that Python called. What that library calls (libm, libc) is attributed to it. Without
 * such a library it is the innermost frame of all. NULL: not known
 */
static const struct stack_frame *innermost_native(const struct stacks *s, u32 stack)
{
	const struct stack_frame *f, *called;
	const char *object, *last = "";

	stack = innermost(s, stack);
	called = stacks__frame(s, stack);
	/* frames go from the innermost to the outermost: the last library found is the outermost one */
	for (; (f = stacks__frame(s, stack)) != NULL && f->kind == FRAME_NATIVE; stack = f->caller) {
		object = path__file_name(f->file);
		if (!*object || path__is_interpreter(object) || path__is_foreign_call(object) || !strcmp(object, last))
			continue;
		called = f;
		last = object;
	}
	return called;
}

static int add_sample(struct gil_natives *n, const struct gil_sample *sample)
{
	if (n->n == SAMPLES_MAX) {
		n->left_out++;
		return 0;
	}
	return array__push(n->samples, n->n, *sample) ? 0 : -ENOMEM;
}

/* Identifies a function like side_of() in gil_blame.c. */
static u32 function_of(const struct stacks *s, u32 stack)
{
	u32 frame = stacks__top_user(s, stack);
	const struct stack_frame *f = stacks__frame(s, frame);

	return f && f->code ? f->code : frame;
}

/* Returns the number of the frame's name plus one, 0 for Python code; *err is -ENOMEM without memory. */
static u32 number_of(struct gil_natives *n, const struct stack_frame *f, int *err)
{
	struct gil_native_name name = {};
	u32 *number;

	if (f->kind != FRAME_NATIVE)
		return 0;
	stack_frame__native(f, name.text, sizeof(name.text));
	/* keys are compared as bytes, so the rest of the text has to be zero */
	number = map__get(&n->names, &name);
	if (!number) {
		*err = -ENOMEM;
		return 0;
	}
	*number = *number ? *number : n->names.n;
	return *number;
}

/* Caches the position for each stack, as many samples share one. Returns NULL without memory. */
static const struct place *place_of(struct gil_blame *b, u32 stack)
{
	struct place *p = map__get(&b->natives.places, &stack);
	const struct stack_frame *f;
	int err = 0;

	if (!p || p->is_set)
		return p;
	f = innermost_native(b->stacks, stack);
	*p = (struct place){ .is_set = true, .is_known = f };
	if (f) {
		p->function = function_of(b->stacks, stack);
		p->native = number_of(&b->natives, f, &err);
	}
	return err ? NULL : p;
}

static int on_samples(const struct rows *rows, void *arg)
{
	const struct schema_event *e = rows__event(rows);
	FIELDS_OF(e, stack, gil, period);
	struct common_fields c = common_fields__of(e);
	struct gil_blame *b = arg;
	int err = 0;

	for (u32 i = 0; !err && i < rows__count(rows); i++) {
		const struct place *place;
		struct gil_sample sample;

		b->natives.sampled = true;
		if (rows__s64(rows, gil, i) == SAMPLE_GIL_NOT_HELD)
			continue;
		place = place_of(b, (u32)rows__u64(rows, stack, i));
		if (!place)
			return -ENOMEM;
		sample = (struct gil_sample){ .time = rows__u64(rows, c.time, i),
					      .tid = (u32)rows__u64(rows, c.tid, i),
					      .native = place->native,
					      .function = place->function };
		sample.period_us = (u32)(rows__u64(rows, period, i) / 1000);
		if (place->is_known)
			err = add_sample(&b->natives, &sample);
	}
	return err;
}

COMPARE_BY(by_thread_and_time, struct gil_sample, ASCENDING(tid), ASCENDING(time))

int gil_natives__init(struct gil_blame *b, const struct query *args)
{
	const struct schema_event *kinds[2] = { schema__event(trace__schema(args->trace), "sample_cpu"), NULL };
	/* All threads are read, since holders are other threads than the selected one. */
	struct trace_filter filter = { .kinds = kinds, .from = args->from, .to = args->to, .pids = args->pids };
	struct gil_natives *n = &b->natives;
	int err = 0;

	map__init(&n->names, sizeof(struct gil_native_name), sizeof(u32));
	map__init(&n->counts, sizeof(struct gil_native_key), sizeof(double));
	map__init(&n->sums, sizeof(u32), sizeof(struct gil_native_sum));
	map__init(&n->places, sizeof(u32), sizeof(struct place));
	/* Without waits samples add nothing. */
	if (!trace__has(args->trace, "gil_wait"))
		n->sampled = trace__has(args->trace, "sample_cpu");
	else if (kinds[0])
		err = trace__read(args->trace, &filter, on_samples, b);
	map__free(&n->places);
	if (n->n)
		qsort(n->samples, n->n, sizeof(*n->samples), by_thread_and_time);
	return err;
}

void gil_natives__free(struct gil_natives *n)
{
	free(n->samples);
	MAPS_FREE(&n->names, &n->counts, &n->sums);
}

/* Returns the index of the thread's first sample at that time or later. */
static u32 first_from(const struct gil_natives *n, u32 tid, u64 time)
{
	struct gil_sample searched = { .time = time, .tid = tid };

	return SEARCH(n->n, i, by_thread_and_time(&n->samples[i], &searched) < 0);
}

int gil_natives__add(struct gil_natives *n, u32 side, u32 function, const struct gil_segment *p)
{
	struct gil_native_key key = { .side = side };
	struct gil_native_sum *sum;
	double *time, weight;

	for (u32 i = first_from(n, p->holder, p->from);
	     i < n->n && n->samples[i].tid == p->holder && n->samples[i].time < p->to; i++) {
		struct gil_sample *s = &n->samples[i];

		if (s->counted == side + 1)
			continue;
		s->counted = side + 1;
		key.native = function && s->function != function ? 0 : s->native;
		time = map__get(&n->counts, &key);
		sum = map__get(&n->sums, &side);
		if (!time || !sum)
			return -ENOMEM;
		weight = p->weight * (s->period_us ? s->period_us : 1);
		*time += weight;
		sum->total += weight;
		sum->n++;
		if (*time > sum->main_ns) {
			sum->main_ns = *time;
			sum->native = key.native;
		}
	}
	return 0;
}

/* Is it just the interpreter's file, "python3.11"? That is no useful name, as Python code mostly runs there. */
static bool is_nameless_interpreter(const char *name)
{
	return !strchr(name, '(') && path__is_interpreter(name);
}

/*
 * Do n samples, a share p of them in one function, show that it took more than half of the time? Uses the lower
 * bound of Wilson's 95% interval: 4 of 4 do, 5 of 6 do not, 60 of 100 do.
 */
static bool is_majority(double p, u32 n)
{
	const double z2 = 1.96 * 1.96;
	double margin = p * (1 - p) / n + z2 / (4.0 * n * n), above = p - 0.5;

	/* (p + z2/2n - z sqrt(margin)) / (1 + z2/n) > 1/2, without the square root */
	return above > 0 && above * above > z2 * margin;
}

const char *gil_natives__main_function(const struct gil_natives *n, u32 side, struct gil_native_share *share)
{
	const struct gil_native_sum *sum = map__find(&n->sums, &side);
	const char *name = NULL;

	*share = (struct gil_native_share){ 0 };
	if (!sum || !sum->native)
		return NULL;
	name = ((const struct gil_native_name *)map__key(&n->names, sum->native - 1))->text;
	share->percent = 100 * sum->main_ns / sum->total;
	share->samples = sum->n;
	share->mostly = is_majority(sum->main_ns / sum->total, sum->n) && !is_nameless_interpreter(name);
	return name;
}

void gil_natives__add_notes(const struct gil_natives *n, struct report_output *out)
{
	if (!n->sampled)
		report_output__note(out,
				    "`sonde record -F 99` names the C function in which the GIL was held (Native).");
	if (n->left_out)
		report_output__note(out,
				    "%llu samples are left out of the column Native, which uses at most %u samples.",
				    n->left_out, SAMPLES_MAX);
}
