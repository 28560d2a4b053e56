// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What belongs to a call besides its time and memory: tensors, whose events name the call by its start, and the work on
 * GPUs that it launched. These events come before the end of their call.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/gpu.h"
#include "model/texts.h"
#include "model/torch_private.h"
#include "output/text.h"
#include "probes/torch/torch.h"
#include "util/array.h"
#include "util/compare.h"
#include "util/search.h"

/* 64 MiB; the work of further launches belongs to no call. */
#define LAUNCHES_MAX (4u << 20)

int torch_parts__add_tensor(struct torch *t, const struct view *v)
{
	struct torch_thread *thread = torch__thread(t, (u32)view__get(v, "pid"), (u32)view__get(v, "tid"));
	struct torch_tensor tensor = {
		.call_start = (u64)view__get(v, "call_start"),
		.argument = (u8)view__get(v, "argument"),
		.element = (u8)view__get(v, "element"),
		.dimensions = (u8)view__get(v, "dimensions"),
	};
	char name[] = "size_0";

	for (u32 i = 0; i < ARRAY_LEN(tensor.sizes); i++) {
		name[sizeof(name) - 2] = (char)('0' + i);
		tensor.sizes[i] = (u64)view__get(v, name);
	}
	t->coverage.has_shapes = true;
	return thread && array__push(thread->tensors, thread->n_tensors, tensor) ? 0 : -ENOMEM;
}

static int on_work(const struct gpu_work *w, void *arg)
{
	const struct gpu_launch *l = w->launch;
	struct torch *t = arg;
	struct torch_thread *thread;

	if (w->host_time || !l || !l->tid || w->end <= w->start)
		return 0;
	if (t->n_launches == LAUNCHES_MAX) {
		t->coverage.launches_dropped++;
		return 0;
	}
	thread = torch__thread(t, l->pid, l->tid);
	t->n_launches++;
	t->coverage.has_device = true;
	return thread && array__push(thread->launches, thread->n_launches,
				     (struct torch_launch){ l->start, w->end - w->start }) ?
		       0 :
		       -ENOMEM;
}

COMPARE_BY(by_time, struct torch_launch, ASCENDING(time))

int torch_parts__read_launches(struct torch *t)
{
	const struct gpu_listener listener = { .work = on_work };
	const struct query *q = t->q;
	struct gpu_model *model;
	int err;

	if (!trace__has(q->trace, "gpu_kernel") && !trace__has(q->trace, "gpu_memcpy") &&
	    !trace__has(q->trace, "gpu_memset") && !trace__has(q->trace, "gpu_graph"))
		return 0;
	err = gpu_model__new(&model, q->trace, q->names);
	if (!err)
		err = gpu_model__read(model, q->from, q->to, q->pids.n ? &q->pids : NULL, &listener, t, NULL);
	gpu_model__free(model);
	MAP_EACH(struct torch_thread *thread, &t->threads)
		if (thread->n_launches)
			qsort(thread->launches, thread->n_launches, sizeof(*thread->launches), by_time);
	return err;
}

/* A call within took its launches already. */
static void take_launches(struct torch_thread *thread, struct torch_span *c)
{
	u32 first = (u32)SEARCH(thread->n_launches, i, thread->launches[i].time < c->start);

	for (u32 i = first; i < thread->n_launches && thread->launches[i].time <= c->end; i++) {
		c->self_device_ns += thread->launches[i].ns;
		thread->launches[i].ns = 0;
	}
}

static void add_sizes(struct text_buffer *text, const struct torch_tensor *tensor)
{
	for (u32 i = 0; i < tensor->dimensions && i < ARRAY_LEN(tensor->sizes); i++)
		text__add(text, "%s%llu", i ? ", " : "", tensor->sizes[i]);
	if (tensor->dimensions > ARRAY_LEN(tensor->sizes))
		text__add(text, ", ..");
}

/*
 * Writes "[[64, 784], [], [784, 128]]": an argument that is not a tensor is written as [], a list of tensors as a list.
 * Results follow the arguments.
 */
static void write_shapes(const struct torch_tensor *list, u32 n, char *buf, size_t size)
{
	struct text_buffer text = { .buf = buf, .size = size };
	u32 written = 0;

	while (n && list[n - 1].argument >= TORCH_TRANSPOSED_RESULT)
		n--;
	text__add(&text, "[");
	for (u32 i = 0; i < n; i++) {
		bool is_first = !i || list[i].argument != list[i - 1].argument;
		bool is_last = i + 1 == n || list[i].argument != list[i + 1].argument;

		for (; written < list[i].argument; written++)
			text__add(&text, written ? ", []" : "[]");
		text__add(&text, "%s%s[", written || !is_first ? ", " : "", is_first && !is_last ? "[" : "");
		add_sizes(&text, &list[i]);
		text__add(&text, "]%s", is_last && !is_first ? "]" : "");
		written = list[i].argument + is_last;
	}
	text__add(&text, "]");
}

COMPARE_BY(by_argument, struct torch_tensor, ASCENDING(argument), ASCENDING(element))

/* Counts the call's floating-point operations. 0 or -ENOMEM. */
static int count_flops(struct torch *t, struct torch_span *c, const struct torch_tensor *tensors, u32 n)
{
	u32 formula;

	while (t->n_formulas < c->name) {
		formula = torch_flops__formula(texts__text(&t->texts, t->n_formulas + 1));
		if (!array__push(t->formulas, t->n_formulas, formula))
			return -ENOMEM;
	}
	formula = t->formulas[c->name - 1];
	if (c->kind == TORCH_OPERATOR && formula && t->coverage.has_shapes && !c->is_unwound)
		c->has_flops = torch_flops__count(formula, tensors, n, &c->flops) ? FLOPS_COUNTED : FLOPS_UNKNOWN;
	return 0;
}

static int take_tensors(struct torch *t, struct torch_thread *thread, struct torch_span *c)
{
	char text[TEXTS_LEN];
	u32 first, n;

	while (thread->n_tensors && thread->tensors[thread->n_tensors - 1].call_start > c->start)
		thread->n_tensors--;
	first = thread->n_tensors;
	while (first && thread->tensors[first - 1].call_start == c->start)
		first--;
	n = thread->n_tensors - first;
	thread->n_tensors = first;
	if (n)
		qsort(&thread->tensors[first], n, sizeof(*thread->tensors), by_argument);
	if (count_flops(t, c, thread->tensors + first, n))
		return -ENOMEM;
	if (!n)
		return 0;
	write_shapes(&thread->tensors[first], n, text, sizeof(text));
	c->shapes = texts__number(&t->shapes, text);
	return c->shapes ? 0 : -ENOMEM;
}

int torch_parts__take(struct torch *t, struct torch_span *c)
{
	struct torch_thread *thread = torch__thread(t, c->pid, c->tid);

	if (!thread)
		return -ENOMEM;
	take_launches(thread, c);
	if (c->kind == TORCH_RANGE)
		return 0;
	return torch_parts__take_memory(t, thread, c) ?: take_tensors(t, thread, c);
}
