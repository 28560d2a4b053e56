// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which asyncio tasks await which others. From 3.14 on each task has a reference to the tasks that await it. Until 3.13
 * a task has only the future that it waits for. That is another task; or, in `gather`, `wait`, `shield` and groups of
 * tasks, a future which a callback of the awaited tasks will complete, and which this callback therefore refers to.
 */
#include "python/objects.h"
#include "python/task_reading.h"
#include "util/array.h"

#include <errno.h>
#include <stdlib.h>

/* Callbacks of a task that are examined, and references of a callback. */
#define CALLBACKS_MAX  64
#define REFERENCES_MAX 32
/* Futures between a task and the one that awaits it, such as those of nested `gather`; callbacks that are examined. */
#define DEPTH_MAX    3
#define EXAMINED_MAX 65536
/* Who awaits whom; in all, and for one task. */
#define AWAITS_MAX   65536
#define AWAITERS_MAX 4096

/* PyFunctionObject.func_closure: 3.8 and 3.9, later */
#define CLOSURE_38 48
#define CLOSURE	   72

struct search {
	struct task_reading *r;
	struct map tasks; /* address of a task -> its index */
	struct map waits; /* address of a future -> index plus one of a task that waits for it */
	u32 *others; /* by index of a task: index plus one of another one that waits for the same future */
	u32 awaited; /* the task whose callbacks are examined */
	u32 examined; /* callbacks */
};

static int add_await(struct search *s, u32 waiter)
{
	struct task_reading *r = s->r;

	if (r->n_awaits == AWAITS_MAX) {
		r->more = true;
		return 0;
	}
	return array__push(r->awaits, r->n_awaits, (struct task_await){ waiter, s->awaited }) ? 0 : -ENOMEM;
}

static int on_awaiter(struct snapshot *l, u64 task, void *arg)
{
	struct search *s = arg;
	const u32 *waiter = map__find(&s->tasks, &task);

	(void)l;
	return waiter ? add_await(s, *waiter) : 0;
}

/* Adds the tasks that wait for a future or a task. */
static int add_waiters(struct search *s, u64 future)
{
	const u32 *first = map__find(&s->waits, &future);
	int err = 0;

	for (u32 at = first ? *first : 0; at && !err; at = s->others[at - 1])
		err = add_await(s, at - 1);
	return err;
}

/* Reads what a callback refers to: the variables of its closure, its object, or its arguments. */
static u32 references_of(struct snapshot *l, u64 callback, u64 *words)
{
	u32 n = 0;

	switch (object__type(l, callback)) {
	case OBJECT_METHOD:
		words[0] = snapshot__word(l, callback + METHOD_SELF);
		return 1;
	case OBJECT_PARTIAL:
		return object__elements(l, snapshot__word(l, callback + PARTIAL_TUPLE), words, REFERENCES_MAX);
	case OBJECT_FUNCTION:
		callback += l->layout.version < 0x030a ? CLOSURE_38 : CLOSURE;
		n = object__elements(l, snapshot__word(l, callback), words, REFERENCES_MAX);
		for (u32 i = 0; i < n; i++)
			words[i] = object__type(l, words[i]) == OBJECT_CELL ?
					   snapshot__word(l, words[i] + CELL_OBJECT) :
					   0;
		return n;
	default:
		return 0;
	}
}

static int add_of_callbacks(struct snapshot *l, struct search *s, const u64 callbacks[2], u32 depth);

/* Adds the tasks that wait for a future, or for one that a callback of this future completes. */
static int on_reference(struct snapshot *l, struct search *s, u64 object, u32 depth)
{
	u64 callbacks[2];
	int err = add_waiters(s, object);

	if (err || depth == DEPTH_MAX || object__type(l, object) != OBJECT_FUTURE)
		return err;
	callbacks[0] = snapshot__word(l, object + FUTURE_CALLBACK);
	callbacks[1] = snapshot__word(l, object + FUTURE_CALLBACKS);
	return add_of_callbacks(l, s, callbacks, depth + 1);
}

/* The future may be an attribute of an object that the callback refers to, such as a group of tasks. */
static int on_callback(struct snapshot *l, struct search *s, u64 callback, u32 depth)
{
	u64 words[REFERENCES_MAX], attributes[OBJECT_WORDS];
	u32 n = references_of(l, callback, words);
	int err = 0;

	for (u32 i = 0; i < n && !err; i++) {
		err = on_reference(l, s, words[i], depth);
		if (err || !object__attribute_words(l, words[i], attributes))
			continue;
		for (u32 k = 0; k < OBJECT_WORDS && !err; k++)
			err = add_waiters(s, attributes[k]);
	}
	return err;
}

static int add_of_callbacks(struct snapshot *l, struct search *s, const u64 callbacks[2], u32 depth)
{
	u64 list[CALLBACKS_MAX], callback;
	int err = callbacks[0] ? on_callback(l, s, callbacks[0], depth) : 0;
	u32 n = callbacks[1] ? object__elements(l, callbacks[1], list, CALLBACKS_MAX) : 0;

	/* pairs of a callback and its context */
	for (u32 i = 0; i < n && !err && s->examined++ < EXAMINED_MAX; i++)
		if (object__elements(l, list[i], &callback, 1))
			err = on_callback(l, s, callback, depth);
	return err;
}

static int add_awaiters(struct snapshot *l, struct search *s, const struct raw_task *t)
{
	int err;

	if (s->r->layout.has_lists && t->is_set)
		return object__each_element(l, t->awaited_by, AWAITERS_MAX, on_awaiter, s);
	if (s->r->layout.has_lists)
		return on_awaiter(l, t->awaited_by, s);
	err = add_waiters(s, t->task);
	return err ? err : add_of_callbacks(l, s, t->callbacks, 0);
}

static int compare(const void *a, const void *b)
{
	const struct task_await *first = a, *second = b;

	return first->waiter != second->waiter ?
		       (first->waiter < second->waiter ? -1 : 1) :
		       (first->awaited > second->awaited) - (first->awaited < second->awaited);
}

/* Sorts by waiter. Several callbacks may lead to the same future. */
static void remove_equal(struct task_reading *r)
{
	u32 n = 0;

	if (r->n_awaits)
		qsort(r->awaits, r->n_awaits, sizeof(*r->awaits), compare);
	for (u32 i = 0; i < r->n_awaits; i++)
		if (!n || compare(&r->awaits[n - 1], &r->awaits[i]))
			r->awaits[n++] = r->awaits[i];
	r->n_awaits = n;
}

static int index_tasks(struct search *s)
{
	for (u32 i = 0; i < s->r->n; i++) {
		u32 *task = map__get(&s->tasks, &s->r->list[i].task), *first;

		if (!task)
			return -ENOMEM;
		*task = i;
		if (!s->r->list[i].waits)
			continue;
		first = map__get(&s->waits, &s->r->list[i].waits);
		if (!first)
			return -ENOMEM;
		s->others[i] = *first;
		*first = i + 1;
	}
	return 0;
}

int task_reading__awaits(struct snapshot *l, struct task_reading *r)
{
	struct search s = { .r = r, .others = calloc(r->n + 1, sizeof(*s.others)) };
	int err;

	if (r->has_awaits) {
		free(s.others);
		return 0;
	}
	r->has_awaits = true;
	map__init(&s.tasks, sizeof(u64), sizeof(u32));
	map__init(&s.waits, sizeof(u64), sizeof(u32));
	err = s.others ? index_tasks(&s) : -ENOMEM;
	for (u32 i = 0; i < r->n && !err; i++) {
		s.awaited = i;
		err = add_awaiters(l, &s, &r->list[i]);
	}
	remove_equal(r);
	MAPS_FREE(&s.tasks, &s.waits);
	free(s.others);
	return err;
}
