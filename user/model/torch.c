// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/torch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/order.h"
#include "model/texts.h"
#include "model/torch_private.h"
#include "util/array.h"

/* What names a call: an address or the number of a probe; of a range the text itself does. */
struct torch_name_key {
	u64 value;
	u32 pid, kind;
};

int torch__new(struct torch **out, const struct query *q)
{
	struct torch *t = calloc(1, sizeof(*t));

	*out = t;
	if (!t)
		return -ENOMEM;
	t->q = q;
	map__init(&t->numbers, sizeof(struct torch_name_key), sizeof(u32));
	texts__init(&t->texts);
	texts__init(&t->shapes);
	map__init(&t->threads, sizeof(struct torch_thread_key), sizeof(struct torch_thread));
	map__init(&t->memory, sizeof(struct torch_address), sizeof(struct torch_block));
	return 0;
}

void torch__free(struct torch *t)
{
	if (!t)
		return;
	MAP_EACH(struct torch_thread *thread, &t->threads) {
		free(thread->pending);
		free(thread->marks);
		free(thread->tensors);
		free(thread->launches);
	}
	MAPS_FREE(&t->numbers, &t->texts, &t->shapes, &t->threads, &t->memory);
	free(t->formulas);
	torch_rests__free(&t->rests);
	free(t);
}

const char *torch__name(const struct torch *t, u32 name)
{
	const char *text = texts__text(&t->texts, name);

	return text ? text : "?";
}

const char *torch__shapes(const struct torch *t, u32 shapes)
{
	return texts__text(&t->shapes, shapes);
}

const struct torch_rests *torch__rests(const struct torch *t)
{
	return &t->rests;
}

const struct torch_coverage *torch__coverage(const struct torch *t)
{
	return &t->coverage;
}

/* Returns the number of the name; 0: no memory. */
static u32 number_of(struct torch *t, const struct view *v)
{
	char name[TEXTS_LEN];

	if (!names__torch(t->q->names, v, name, sizeof(name)))
		snprintf(name, sizeof(name), "?");
	/* torch.profiler's steps are one row in its table */
	if (!strncmp(name, "ProfilerStep#", 13))
		snprintf(name, sizeof(name), "ProfilerStep*");
	return texts__number(&t->texts, name);
}

static u32 name_of(struct torch *t, enum torch_kind kind, const struct view *v)
{
	struct torch_name_key key = { .pid = (u32)view__get(v, "pid"), .kind = kind };
	u32 *number;

	if (kind == TORCH_RANGE)
		return number_of(t, v);
	key.value = (u64)view__get(v, kind == TORCH_NODE ? "vtable" : "handle");
	if (!key.value) {
		key.value = (u64)view__get(v, "probe");
		key.pid = 0;
	}
	number = map__get(&t->numbers, &key);
	if (number && !*number)
		*number = number_of(t, v);
	return number ? *number : 0;
}

static int on_call(struct torch *t, enum torch_kind kind, const struct view *v)
{
	struct common_fields f = common_fields__of(v->event);
	u16 flags = (u16)view__s64(v, f.flags);
	struct torch_span c = {
		.kind = kind,
		.pid = (u32)view__s64(v, f.pid),
		.tid = (u32)view__s64(v, f.tid),
		.name = name_of(t, kind, v),
		.is_open = flags & EVENT_OPEN,
		.is_unwound = flags & EVENT_UNWOUND,
		.start = (u64)view__s64(v, f.start),
		.end = (u64)view__s64(v, f.time),
		.inner = (u64)view__get(v, "inner"),
		.stack = (u32)view__get(v, "stack"),
		.hits = (u64)view__get(v, "hits"),
		.entry_ns = (u64)view__get(v, "entry_ns"),
		.programs_ns = (u64)view__get(v, "probes_ns"),
		.sequence = kind == TORCH_RANGE ? -1 : view__get(v, "sequence"),
		.made_by = (u64)view__get(v, kind == TORCH_OPERATOR ? "thread" : "made_by"),
	};
	int err;

	if (!c.name)
		return -ENOMEM;
	if (c.start > c.end)
		c.start = c.end;
	if (torch_rests__overlap(&t->rests, c.pid, c.start, c.end)) {
		t->coverage.in_rests++;
		return 0;
	}
	err = torch_parts__take(t, &c);
	if (err)
		return err;
	t->coverage.calls += kind == TORCH_OPERATOR;
	t->coverage.nodes += kind == TORCH_NODE;
	t->coverage.ranges += kind == TORCH_RANGE;
	t->coverage.open += c.is_open;
	t->coverage.unwound += c.is_unwound;
	return torch_tree__add(t, &c);
}

static int on_event(const struct view *v, void *arg)
{
	static const char *const calls[] = {
		[TORCH_OPERATOR] = "torch_op", [TORCH_NODE] = "torch_node", [TORCH_RANGE] = "torch_range"
	};

	for (u32 kind = 0; kind < ARRAY_LEN(calls); kind++)
		if (!strcmp(v->event->name, calls[kind]))
			return on_call(arg, kind, v);
	return strcmp(v->event->name, "torch_alloc") ? torch_parts__add_tensor(arg, v) :
						       torch_parts__add_memory(arg, v);
}

static int on_rows(const struct rows *rows, void *arg)
{
	return order__add(arg, rows);
}

/* In traces whose calls have no probes_ns, torch_cost.entry is a median, with stacks one that contains the walk. */
static bool has_warm_entry(const struct torch *t)
{
	const struct schema_event *op = schema__event(trace__schema(t->q->trace), "torch_op");

	return op && schema_event__field(op, "probes_ns");
}

static int on_cost(const struct rows *rows, void *arg)
{
	struct torch *t = arg;

	ROWS_EACH(v, rows) {
		t->cost_call = (u64)view__get(&v, "call");
		t->cost_own = (u64)view__get(&v, "own");
		t->cost_entry = has_warm_entry(t) ? (u64)view__get(&v, "entry") : 0;
		t->cost_hit = (u64)view__get(&v, "hit");
		t->coverage.is_corrected = true;
		t->coverage.outside_ns = t->cost_call > t->cost_own ? t->cost_call - t->cost_own : 0;
	}
	return 0;
}

/* The cost is written once, possibly outside of the selected time. */
static int read_cost(struct torch *t)
{
	struct query all = { .trace = t->q->trace };

	return query__read_kind(&all, "torch_cost", on_cost, t);
}

int torch__read(struct torch *t, int (*fn)(const struct torch_span *c, const struct torch_span *parent, void *arg),
		void *arg)
{
	static const char *const names[] = { "torch_op", "torch_node", "torch_range", "torch_alloc", "torch_shape" };
	const struct schema_event *kinds[ARRAY_LEN(names) + 1] = { 0 };
	struct order *order = order__new(on_event, t);
	u32 n = 0;
	int err = order ? read_cost(t) ?: torch_rests__read(&t->rests, t->q) : -ENOMEM;

	t->fn = fn;
	t->arg = arg;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		kinds[n] = schema__event(trace__schema(t->q->trace), names[i]);
		n += kinds[n] != NULL;
	}
	if (!err && n)
		err = torch_parts__read_launches(t);
	if (!err && n)
		err = query__read(t->q, kinds, on_rows, order);
	if (!err)
		err = order__finish(order);
	order__free(order);
	return err ? err : torch_tree__finish(t);
}
