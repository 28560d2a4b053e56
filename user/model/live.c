// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Stores the records of the current interval until the next cut. */
#include "model/live_private.h"

#include "probes/gil/gil.h"
#include "probes/gpu/gpu.h"
#include "probes/proc/proc.h"
#include "model/lock_kind.h"
#include "probes/sample/sample.h"
#include "probes/sched/sched.h"
#include "probes/torch/torch.h"
#include "util/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int live__new(struct live **out, const struct schema *schema, u8 (*wait_rule)(const struct stack_frame *f))
{
	struct live *l = calloc(1, sizeof(*l));
	int err = l ? names__create(&l->names, schema) : -ENOMEM;

	*out = NULL;
	if (err) {
		free(l);
		return err;
	}
	l->schema = schema;
	l->wait_rule = wait_rule;
	recent__init(&l->frames, sizeof(u32), sizeof(struct frame), FRAMES_MAX);
	recent__init(&l->codes, sizeof(u32), sizeof(struct code), CODES_MAX);
	recent__init(&l->gil_numbers, sizeof(struct gil_key), sizeof(u32), GILS_MAX);
	recent__init(&l->gil_counts, sizeof(u32), sizeof(u32), GILS_MAX);
	recent__init(&l->threads, sizeof(u32), sizeof(struct thread), THREADS_MAX);
	map__init(&l->drops, sizeof(struct drop_key), sizeof(u32));
	map__init(&l->old_drops, sizeof(struct drop_key), sizeof(u32));
	map__init(&l->functions, sizeof(u32), sizeof(struct function));
	map__init(&l->wakes, sizeof(struct wake_key), sizeof(struct waker));
	map__init(&l->old_wakes, sizeof(struct wake_key), sizeof(struct waker));
	map__init(&l->on_cpu, sizeof(struct time_key), sizeof(u64));
	map__init(&l->off_cpu, sizeof(struct time_key), sizeof(u64));
	map__init(&l->sites, sizeof(u32), sizeof(struct site));
	map__init(&l->throttles, sizeof(u32), sizeof(struct throttle));
	*out = l;
	return 0;
}

static void free_view(struct live_view *v)
{
	free(v->gils);
	free(v->pairs);
	free(v->functions);
	free(v->processes);
	free(v->waits);
	free(v->throttles);
	*v = (struct live_view){};
}

void live__free(struct live *l)
{
	if (!l)
		return;
	free_view(&l->view);
	names__free(l->names);
	recent__free(&l->frames);
	recent__free(&l->codes);
	recent__free(&l->gil_numbers);
	recent__free(&l->gil_counts);
	recent__free(&l->threads);
	MAPS_FREE(&l->drops, &l->old_drops, &l->functions, &l->on_cpu, &l->off_cpu, &l->sites, &l->wakes, &l->old_wakes,
		  &l->throttles);
	free(l->waits);
	free(l);
}

static int on_frame(struct live *l, const struct view *v)
{
	u32 id = (u32)view__get(v, "frame");
	struct frame *f = id ? recent__get(&l->frames, &id) : NULL;

	if (f)
		*f = (struct frame){ (u32)view__get(v, "caller"), (u32)view__get(v, "code"), (u8)view__get(v, "kind") };
	return f || !id ? 0 : -ENOMEM;
}

static int on_code(struct live *l, const struct view *v)
{
	u32 id = (u32)view__get(v, "code");
	struct code *c = id ? recent__get(&l->codes, &id) : NULL;
	/* the text is made now, because its strings may be evicted before the code */
	struct stack_frame f = {
		.code = id,
		.kind = (u8)view__get(v, "kind"),
		.name = names__string(l->names, (u32)view__get(v, "name")),
		.file = names__string(l->names, (u32)view__get(v, "file")),
	};

	if (c) {
		c->users = stack_frame__is_users(&f);
		c->package = stack_frame__is_package(&f);
		c->rule = l->wait_rule && f.kind == FRAME_PYTHON ? l->wait_rule(&f) : 0;
		c->lock = f.kind == FRAME_NATIVE ? (u8)lock_kind__of_native(&f) : LOCK_KIND_UNKNOWN;
		stack_frame__function(&f, c->text, sizeof(c->text));
	}
	return c || !id ? 0 : -ENOMEM;
}

/*
 * BPF sends a frame once and stores it as long as it is in use. When a stack is used for the first time in a
 * generation, its callers are marked as used too, so that they are stored as long here.
 */
void live__use_stack(struct live *l, u32 id)
{
	const struct frame *frame = recent__peek(&l->frames, &id);

	if (!frame || map__find(&l->frames.young, &id))
		return;
	for (u32 depth = 0; id && depth < DEPTH_MAX; depth++) {
		frame = recent__find(&l->frames, &id);
		if (!frame)
			break;
		id = frame->caller;
		recent__find(&l->codes, &frame->code);
	}
}

/* Notes that the thread held the GIL with this stack. */
static int note_held(struct live *l, u32 tid, u32 stack)
{
	struct thread *t = tid && stack ? recent__get(&l->threads, &tid) : NULL;

	if (t)
		t->hold_stack = stack;
	live__use_stack(l, stack);
	return tid && stack && !t ? -ENOMEM : 0;
}

static int on_wait(struct live *l, const struct view *v)
{
	bool timeout = view__get(v, "result") == GIL_WAIT_TIMEOUT;

	if (l->n_waits == WAITS_MAX) {
		l->waits_lost++;
		return 0;
	}
	if (!array__push(l->waits, l->n_waits,
			 (struct wait){
				 .gil = (u64)view__get(v, "gil"),
				 .start = (u64)view__get(v, "start"),
				 .end = (u64)view__get(v, "time"),
				 .pid = (u32)view__get(v, "pid"),
				 .tid = (u32)view__get(v, "tid"),
				 .number = (u32)view__get(v, "number"),
				 .stack = (u32)view__get(v, "stack"),
				 .holder_stack = (u32)view__get(v, "holder_stack"),
				 .holder = (u32)view__get(v, timeout ? "holder" : "dropper"),
				 .timeout = timeout,
			 }))
		return -ENOMEM;
	live__use_stack(l, l->waits[l->n_waits - 1].stack);
	return note_held(l, l->waits[l->n_waits - 1].holder, l->waits[l->n_waits - 1].holder_stack);
}

static int on_drop(struct live *l, const struct view *v)
{
	struct drop_key key = { (u32)view__get(v, "waiter"), (u32)view__get(v, "number") };
	u32 *stack = l->drops.n < WAITS_MAX ? map__get(&l->drops, &key) : NULL;

	if (stack)
		*stack = (u32)view__get(v, "stack");
	return note_held(l, (u32)view__get(v, "tid"), (u32)view__get(v, "stack"));
}

/*
 * A slice of time in which GILs were measured, and the pause before it. All waits of an interval are scaled alike:
 * `top` has no --cost-limit, so its slices are all about as long (GIL_SLICE).
 */
static int on_slice(struct live *l, const struct view *v)
{
	l->slices_ns += (u64)view__get(v, "time") - (u64)view__get(v, "start");
	l->pauses_ns += (u64)view__get(v, "pause");
	return 0;
}

/* Returns whether the stack has a Python frame. */
static bool has_python(struct live *l, u32 id)
{
	for (u32 depth = 0; id && depth < DEPTH_MAX; depth++) {
		const struct frame *frame = recent__find(&l->frames, &id);

		if (!frame)
			break;
		if (frame->kind == FRAME_PYTHON)
			return true;
		id = frame->caller;
	}
	return false;
}

int live__add_time(struct map *times, struct time_key key, u64 ns)
{
	u64 *sum = times->n < FUNCTIONS_MAX ? map__get(times, &key) : map__find(times, &key);

	if (!sum)
		return times->n < FUNCTIONS_MAX ? -ENOMEM : 0;
	*sum += ns;
	return 0;
}

/* As in report python, a Python function's time includes the C functions that it calls. */
static int on_sample(struct live *l, const struct view *v)
{
	u64 period = (u64)view__get(v, "period");
	u32 id = (u32)view__get(v, "stack");
	bool python = has_python(l, id), innermost = true;
	u32 pid = (u32)view__get(v, "pid");
	int err = live__add_time(&l->on_cpu, (struct time_key){ .pid = pid, .tid = (u32)view__get(v, "tid") }, period);

	if (!err)
		err = live__add_time(&l->on_cpu, (struct time_key){ .pid = pid, .code = live__user_code(l, id) },
				     period);
	if (err)
		return err;

	l->sample++;
	l->samples++;
	l->samples_ns += period;
	for (u32 depth = 0; id && depth < DEPTH_MAX; depth++) {
		const struct frame *frame = recent__find(&l->frames, &id);
		struct function *f;
		u32 code;

		if (!frame)
			break;
		id = frame->caller;
		recent__find(&l->codes, &frame->code);
		if (!frame->code || (python && frame->kind != FRAME_PYTHON))
			continue;
		code = l->functions.n < FUNCTIONS_MAX || map__find(&l->functions, &frame->code) ? frame->code : UNKNOWN;
		f = map__get(&l->functions, &code);
		if (!f)
			return -ENOMEM;
		f->self_ns += innermost ? period : 0;
		f->total_ns += f->last != l->sample ? period : 0;
		f->last = l->sample;
		innermost = false;
	}
	return 0;
}

/* Returns whether the family has events of which figures or names are made. */
static bool is_read(const void *record, u32 size)
{
	struct event head;

	if (size < sizeof(head))
		return false;
	memcpy(&head, record, sizeof(head));
	switch (EVENT_FAMILY(head.id)) {
	case 0:
	case EVENT_FAMILY(ID_proc_task):
	case EVENT_FAMILY(ID_gil_wait):
	case EVENT_FAMILY(ID_sample_cpu):
	case EVENT_FAMILY(ID_gpu_name):
	case EVENT_FAMILY(ID_torch_class):
		return true;
	case EVENT_FAMILY(ID_sched_throttle):
		return head.id == ID_sched_throttle;
	default:
		return false;
	}
}

int live__feed(struct live *l, const void *record, u32 size)
{
	static const struct {
		const char *event;
		int (*fn)(struct live *l, const struct view *v);
	} kinds[] = {
		{ "meta_frame", on_frame },
		{ "meta_code", on_code },
		{ "gil_wait", on_wait },
		{ "gil_drop", on_drop },
		{ "gil_slice", on_slice },
		{ "sample_cpu", on_sample },
		{ "sample_off", live__on_off },
		{ "sample_wake", live__on_wake },
		{ "sched_throttle", live__on_throttle },
	};
	struct view v;
	int err = 0;

	if (!is_read(record, size) || !view__of_record(&v, l->schema, record, size))
		return 0;
	err = names__feed(l->names, &v);
	for (u32 i = 0; !err && i < ARRAY_LEN(kinds); i++)
		if (!strcmp(v.event->name, kinds[i].event))
			return kinds[i].fn(l, &v);
	return err;
}

/* Frees what belongs to the last interval only. */
static void forget(struct live *l)
{
	map__free(&l->old_drops);
	l->old_drops = l->drops;
	map__init(&l->drops, sizeof(struct drop_key), sizeof(u32));
	map__free(&l->old_wakes);
	l->old_wakes = l->wakes;
	map__init(&l->wakes, sizeof(struct wake_key), sizeof(struct waker));
	MAPS_FREE(&l->functions, &l->on_cpu, &l->off_cpu, &l->sites, &l->throttles);
	l->n_waits = 0;
	l->waits_lost = l->samples = l->samples_ns = l->slices_ns = l->pauses_ns = l->unmeasured_ns = 0;
}

void live__set_unmeasured(struct live *l, u64 ns)
{
	l->unmeasured_ns = ns;
}

int live__cut(struct live *l, u64 now, struct live_view *out)
{
	double weight = l->slices_ns ? 1 + (double)l->pauses_ns / (double)l->slices_ns : 1;
	int err;

	free_view(&l->view);
	l->view.from = l->last_cut ? l->last_cut : now;
	l->view.to = now;
	l->view.unmeasured_ns = l->unmeasured_ns < l->view.to - l->view.from ? l->unmeasured_ns :
									       l->view.to - l->view.from;
	l->view.sliced = l->pauses_ns != 0;
	l->view.lost = l->waits_lost;
	l->last_cut = now;
	err = live__sum_gils(l, weight);
	if (!err)
		err = live__sum_pairs(l, weight);
	if (!err)
		err = live__sum_functions(l);
	if (!err)
		err = live__sum_processes(l);
	forget(l);
	*out = l->view;
	return err;
}

const struct names *live__names(const struct live *l)
{
	return l->names;
}
