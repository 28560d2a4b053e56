// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "python/tasks.h"

#include "python/objects.h"
#include "python/task_reading.h"
#include "util/array.h"
#include "util/path.h"
#include "util/python_library.h"
#include "util/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TASKS_MAX 16384
/* The first bytes of a _asyncio.Task that are searched for its coroutine. */
#define TASK_FROM 16
/* After so many tasks pages are read anew, which takes some 1 ms. */
#define TASKS_PER_PAGES 128
/* Words of a coroutine's locals and stack: those that are read at most, and the last ones that may be a lock's. */
#define LOCALS_MAX 4096
#define STACK_MAX  16
/* Words of stacks that are examined in one reading for the holders of locks. */
#define HOLDERS_MAX 65536
/* PyFrameObject.f_valuestack in 3.10 */
#define VALUE_STACK	 64
#define INTERPRETERS_MAX 64
#define STATES_MAX	 4096
/* Attempts to read a list of tasks that changes meanwhile, and nodes that are read of all lists in all attempts. */
#define ATTEMPTS_MAX 4
#define NODES_MAX    (ATTEMPTS_MAX * TASKS_MAX)
/* Tasks that are followed from the holder of a lock on, each of which waits for the next one. */
#define CHAIN_MAX 16
#define NONE	  0xffffffffu

/* The main interpreter: the last one of the list, which begins with the newest one. */
u64 snapshot__main_interpreter(const struct snapshot *l)
{
	u64 interpreter = snapshot__word(l, l->runtime + l->layout.interpreters), next;

	for (u32 i = 0; i < INTERPRETERS_MAX && (next = snapshot__word(l, interpreter + l->layout.interp_next)) != 0;
	     i++)
		interpreter = next;
	return interpreter;
}

/* Finds the set of weak references to all tasks: the attribute `data` of the WeakSet in module asyncio.tasks. */
static u64 set_of(struct snapshot *l, const struct task_layout *p)
{
	u64 interpreter = snapshot__main_interpreter(l);

	return interpreter ? object__first_set(l, object__of_module(l, interpreter, "asyncio.tasks", p->set)) : 0;
}

/* The number of words of a frame's locals and stack; 0: it runs, has ended, was not begun, or is not a frame. */
static u32 words_of(const struct task_layout *p, const u8 *frame, u64 locals)
{
	u64 bytes, base;
	s32 n;

	memcpy(&n, frame + p->stack_top, sizeof(n));
	memcpy(&bytes, frame + p->stack_top, sizeof(bytes));
	memcpy(&base, frame + VALUE_STACK, sizeof(base));
	if (p->top == STACK_TOP_DEPTH && n > 0 && n <= LOCALS_MAX)
		bytes = base + (u64)n * sizeof(u64) - locals;
	else if (p->top == STACK_TOP_POINTER)
		bytes -= locals;
	else
		bytes = n > 0 ? (u64)n * sizeof(u64) : 0;
	return bytes % sizeof(u64) || bytes > LOCALS_MAX * sizeof(u64) ? 0 : (u32)(bytes / sizeof(u64));
}

/* Adds the frame of a coroutine. Returns the object that it awaits, which is on top of its stack; 0: there is none. */
static u64 add_frame(struct snapshot *l, const struct task_layout *p, u64 coroutine, struct raw_task *t)
{
	u8 frame[TASK_FRAME_BYTES];
	u64 at = coroutine + p->frame, code, type, words[STACK_MAX];
	u32 top, n;

	if (p->frame_is_object)
		at = snapshot__word(l, at);
	if (l->layout.frame_code > sizeof(frame) - 8 || l->layout.frame_instr > sizeof(frame) - 8 ||
	    l->layout.frame_copy > sizeof(frame) - 4 || !snapshot__read(l, at, frame, sizeof(frame)))
		return 0;
	memcpy(&code, frame + l->layout.frame_code, sizeof(code));
	code &= ~TASK_TAG_MASK;
	if (!snapshot__read(l, code + OBJECT_TYPE, &type, sizeof(type)) || type != l->code_type)
		return 0;
	top = words_of(p, frame, at + p->locals);
	n = top < STACK_MAX ? top : STACK_MAX;
	if (!n)
		return 0;
	t->frames[t->n].code = code;
	t->frames[t->n].offset = snapshot__offset(l, frame, code);
	t->frames[t->n].locals = at + p->locals;
	t->frames[t->n].name = p->name ? snapshot__word(l, coroutine + p->name) : 0;
	t->frames[t->n++].words = top;
	if (!snapshot__read(l, at + p->locals + ((u64)top - n) * sizeof(u64), words, n * sizeof(u64)))
		return 0;
	for (u32 i = 0; i < n; i++)
		t->hash = t->hash * 31 + words[i];
	/* from 3.15 on there is a word for a virtual iterator above the object, which is NULL here */
	if (l->layout.version >= 0x030f && n > 1 && !(words[n - 1] & ~TASK_TAG_MASK))
		n--;
	return words[n - 1] & ~TASK_TAG_MASK;
}

static void walk(struct snapshot *l, const struct task_layout *p, u64 object, struct raw_task *t)
{
	/* wrappers are between coroutines, so there are at most as many of them */
	for (u32 i = 0; i < 2 * TASK_FRAMES_MAX && object && t->n < TASK_FRAMES_MAX; i++) {
		enum object_type type = object__type(l, object);

		if (type == OBJECT_COROUTINE)
			object = add_frame(l, p, object, t);
		else if (type == OBJECT_AWAITS_GENERATOR)
			object = snapshot__word(l, object + AWAITS_OBJECT);
		else
			return;
	}
}

/* Finds the word task_coro, the only member that can be a coroutine while the task waits. */
static u32 find_coroutine(struct snapshot *l, const u64 *words)
{
	for (u32 i = TASK_FROM / 8; i < TASK_SIZE / 8; i++)
		if (object__type(l, words[i]) == OBJECT_COROUTINE)
			return i;
	return 0;
}

static enum task_state state_of(struct snapshot *l, const struct task_layout *p, u64 coroutine)
{
	u64 frame = coroutine + p->frame;
	s8 state;

	if (p->frame_is_object)
		frame = snapshot__word(l, frame);
	if (!frame || !snapshot__read(l, frame + (u64)(s64)p->state, &state, sizeof(state)) || state > p->runs)
		return TASK_ENDED;
	return state == p->runs ? TASK_RUNS : TASK_READY;
}

/* Until 3.13 a number stands for the name Task-NUMBER. */
static void read_name(struct snapshot *l, u64 name, char *to)
{
	s64 number = object__number(l, name);
	char *text = number < 0 ? snapshot__text(l, name) : NULL;

	if (number >= 0)
		snprintf(to, TASK_NAME_MAX, "Task-%lld", number);
	else if (text)
		utf8__copy(to, TASK_NAME_MAX, text);
	free(text);
}

static void read_awaiters(const struct task_reading *r, const u64 *words, struct raw_task *t)
{
	if (r->layout.has_lists) {
		t->awaited_by = words[r->layout.awaited_by / sizeof(u64)];
		t->is_set = ((const u8 *)words)[r->layout.is_set] != 0;
	} else {
		t->callbacks[0] = words[FUTURE_CALLBACK / sizeof(u64)];
		t->callbacks[1] = words[FUTURE_CALLBACKS / sizeof(u64)];
	}
}

/* Adds a task, whose first words were read. */
static int add_raw_task(struct snapshot *l, struct task_reading *r, u64 task, const u64 *words)
{
	struct raw_task t = { .task = task };
	u64 now;

	if (r->reads++ % TASKS_PER_PAGES == 0 && snapshot__keep_pages(l))
		return -ENOMEM;
	if (!r->coroutine)
		r->coroutine = find_coroutine(l, words);
	if (!r->coroutine || object__type(l, words[r->coroutine]) != OBJECT_COROUTINE)
		return 0;
	/* task_fut_waiter, the member before it: without one the task runs or is about to, or has ended */
	t.waits = words[r->coroutine - 1];
	t.state = t.waits ? TASK_WAITS : state_of(l, &r->layout, words[r->coroutine]);
	r->all += t.state != TASK_ENDED;
	if (t.state == TASK_ENDED || (!t.waits && !r->has_all))
		return 0;
	t.hash = t.waits;
	if (t.state != TASK_RUNS)
		walk(l, &r->layout, words[r->coroutine], &t);
	/* the task ran meanwhile */
	if (t.waits && (!t.n || !snapshot__read_now(l, t.task + (r->coroutine - 1) * sizeof(u64), &now, sizeof(now)) ||
			now != t.waits))
		return 0;
	read_awaiters(r, words, &t);
	if (r->has_all)
		read_name(l, words[r->coroutine + 1], t.name);
	return array__push(r->list, r->n, t) ? 0 : -ENOMEM;
}

static int on_reference(struct snapshot *l, u64 reference, void *arg)
{
	u64 task = snapshot__word(l, reference + WEAKREF_OBJECT), words[TASK_SIZE / 8];

	if (!object__is_address(task) || !snapshot__read(l, task, words, sizeof(words)))
		return 0;
	return add_raw_task(l, arg, task, words);
}

/*
 * Reads a list of tasks, which begins and ends at the node `head`. Returns 0, -ENOMEM, or -EAGAIN: a task was added or
 * removed meanwhile.
 */
static int read_list(struct snapshot *l, struct task_reading *r, u64 head)
{
	u32 node = r->layout.task_node;
	u64 words[TASK_SIZE / 8], previous = head, at = snapshot__word(l, head);
	int err = 0;

	while (!err && at != head && r->all < TASKS_MAX && r->nodes < NODES_MAX) {
		if (!object__is_address(at) || !snapshot__read(l, at - node, words, sizeof(words)) ||
		    words[node / 8 + 1] != previous)
			return -EAGAIN;
		r->nodes++;
		err = add_raw_task(l, r, at - node, words);
		previous = at;
		at = words[node / 8];
	}
	r->more |= !err && at != head;
	return err;
}

/* A list that changes at each attempt is read in part. */
static int read_list_anew(struct snapshot *l, struct task_reading *r, u64 head)
{
	struct task_reading before = *r;
	int err = -EAGAIN;

	for (u32 i = 0; i < ATTEMPTS_MAX && err == -EAGAIN; i++) {
		snapshot__forget_pages(l);
		r->n = before.n;
		r->all = before.all;
		err = read_list(l, r, head);
	}
	r->more |= err == -EAGAIN;
	return err == -EAGAIN ? 0 : err;
}

/* Reads the lists of the main interpreter: those of its threads, and that of the tasks of threads that have ended. */
static int read_lists(struct snapshot *l, struct task_reading *r)
{
	u64 interpreter = snapshot__main_interpreter(l), state;
	int err = interpreter ? read_list_anew(l, r, interpreter + r->layout.interp_tasks) : 0;

	state = interpreter ? snapshot__word(l, interpreter + l->layout.interp_threads) : 0;
	for (u32 i = 0; i < STATES_MAX && state && !err; i++) {
		err = read_list_anew(l, r, state + r->layout.state_tasks);
		state = snapshot__word(l, state + l->layout.state_next);
	}
	return err;
}

/* Reads the tasks into r. Returns 0, -ENOENT: there is no set of tasks; -ENOMEM. */
static int read_tasks(struct snapshot *l, struct task_reading *r, struct tasks *t)
{
	if (r->layout.has_lists)
		return read_lists(l, r);
	if (!t->set || object__type(l, t->set) != OBJECT_SET)
		t->set = set_of(l, &r->layout);
	return t->set ? object__each_element(l, t->set, TASKS_MAX, on_reference, r) : -ENOENT;
}

/* A stack without frames: one of them could not be read. */
static struct task_stack stack_of(struct snapshot *l, const struct raw_task *t)
{
	struct task_stack stack = { .n = 0 };

	for (u32 i = t->n; i-- > 0; stack.n++) {
		struct snapshot_frame *f = &stack.frames[stack.n];
		u64 code = t->frames[i].code, name = t->frames[i].name;

		if (!snapshot__frame(l, code, t->frames[i].offset, f) ||
		    (name && !snapshot__name_frame(l, code, name, f)))
			return (struct task_stack){ .n = 0 };
	}
	return stack;
}

static bool is_same(const struct task_stack *a, const struct task_stack *b)
{
	for (u32 i = 0; i < a->n && a->n == b->n; i++)
		if (a->frames[i].line != b->frames[i].line || strcmp(a->frames[i].name, b->frames[i].name) ||
		    strcmp(a->frames[i].file, b->frames[i].file))
			return false;
	return a->n == b->n;
}

static bool is_lock(const struct snapshot_frame *f)
{
	return path__ends_with(f->file, "/asyncio/locks.py") && python_library__part(f->file);
}

/*
 * Is the task inside of `async with object`? The statement leaves the method __aexit__ of the object on the
 * coroutine's stack, from 3.14 on as the function and the object. A task that only waits for the object has it there,
 * too, and runs a method of the object above.
 */
static bool is_holder(struct snapshot *l, struct task_reading *r, const struct raw_task *t, u64 object)
{
	for (u32 i = 0; i < t->n && r->examined < HOLDERS_MAX; i++) {
		u32 n = t->frames[i].words < STACK_MAX ? t->frames[i].words : STACK_MAX;
		u64 words[STACK_MAX + 1] = { 0 }, self = 0;

		r->examined += n;
		if (i + 1 < t->n)
			self = snapshot__word(l, t->frames[i + 1].locals) & ~TASK_TAG_MASK;
		if (self == object ||
		    !snapshot__read(l, t->frames[i].locals + (t->frames[i].words - n) * sizeof(u64), words, n * 8))
			continue;
		for (u32 k = 0; k < n; k++) {
			u64 word = words[k] & ~TASK_TAG_MASK;
			enum object_type type = object__type(l, word);

			if ((type == OBJECT_METHOD && snapshot__word(l, word + METHOD_SELF) == object) ||
			    (type == OBJECT_FUNCTION && (words[k + 1] & ~TASK_TAG_MASK) == object))
				return true;
		}
	}
	return false;
}

static u32 holder_of(struct snapshot *l, struct task_reading *r, u64 object)
{
	for (u32 i = 0; i < r->n && object__is_address(object); i++)
		if (is_holder(l, r, &r->list[i], object))
			return i;
	return NONE;
}

/* The object whose method the innermost coroutine runs. */
static u64 object_of(struct snapshot *l, const struct raw_task *t)
{
	return t->n ? snapshot__word(l, t->frames[t->n - 1].locals) & ~TASK_TAG_MASK : 0;
}

/* Returns a task that this one awaits, or that holds the lock for which this one waits; NONE: there is none. */
static u32 next_of(struct snapshot *l, struct task_reading *r, u32 at)
{
	const struct raw_task *t = &r->list[at];
	struct snapshot_frame f;

	for (u32 i = 0; i < r->n_awaits; i++)
		if (r->awaits[i].waiter == at)
			return r->awaits[i].awaited;
	if (!t->n || !snapshot__frame(l, t->frames[t->n - 1].code, t->frames[t->n - 1].offset, &f) || !is_lock(&f))
		return NONE;
	return holder_of(l, r, object_of(l, t));
}

/* Finds the holder of a lock, and the last of the tasks that it waits for. */
static int find_holder(struct snapshot *l, struct task_reading *r, struct task_group *g)
{
	u32 at = holder_of(l, r, g->object), next, n = 0;
	int err = at == NONE ? 0 : task_reading__awaits(l, r);

	if (at == NONE || err)
		return err;
	g->holder = stack_of(l, &r->list[at]);
	memcpy(g->holder_name, r->list[at].name, sizeof(g->holder_name));
	while (n < CHAIN_MAX && (next = next_of(l, r, at)) != NONE) {
		at = next;
		n++;
	}
	/* more than so many wait for each other in a circle */
	if (n && n < CHAIN_MAX)
		g->last = stack_of(l, &r->list[at]);
	if (n < CHAIN_MAX)
		g->peer = task_reading__peer(l, &r->list[at], n ? &g->last : &g->holder);
	return 0;
}

/* Was the outermost coroutine called with a stream, as a server does for each client? */
static bool serves(struct snapshot *l, const struct task_layout *p, const struct raw_task *t)
{
	s32 arguments;

	if (!snapshot__read(l, t->frames[0].code + p->arguments, &arguments, sizeof(arguments)))
		return false;
	/* self, the reader and the writer */
	for (s32 i = 0; i < 3 && i < arguments && i < (s32)t->frames[0].words; i++)
		if (object__type(l, snapshot__word(l, t->frames[0].locals + (u32)i * 8) & ~TASK_TAG_MASK) ==
		    OBJECT_STREAM)
			return true;
	return false;
}

static int add_group(struct snapshot *l, struct task_reading *r, const struct raw_task *raw,
		     const struct task_stack *stack, struct tasks *t)
{
	struct task_group *g;

	if (!array__room(t->groups, t->n))
		return -ENOMEM;
	g = &t->groups[t->n++];
	*g = (struct task_group){
		.state = raw->state,
		.first = (u32)(raw - r->list),
		.stack = *stack,
		.object = object_of(l, raw),
		.serves = raw->n && serves(l, &r->layout, raw),
	};
	if (raw->state != TASK_WAITS || !stack->n)
		return 0;
	if (is_lock(&stack->frames[0]))
		return find_holder(l, r, g);
	g->peer = task_reading__peer(l, raw, stack);
	return 0;
}

/* Lines, which are expensive to find, are equal then, too. */
static bool has_same_frames(const struct raw_task *a, const struct raw_task *b)
{
	for (u32 i = 0; i < a->n && a->n == b->n; i++)
		if (a->frames[i].code != b->frames[i].code || a->frames[i].offset != b->frames[i].offset)
			return false;
	return a->state == b->state && a->n == b->n;
}

/* Adds a task to its group, whose index is in *group, which may be a new one. */
static int add_task(struct snapshot *l, struct task_reading *r, const struct raw_task *raw, struct tasks *t, u32 *group)
{
	const u64 *waits = map__find(&t->waits, &raw->task);
	struct task_stack stack;
	u32 i = 0;
	int err;

	*group = TASK_NO_GROUP;
	while (i < t->n && !has_same_frames(&r->list[t->groups[i].first], raw))
		i++;
	if (i == t->n) {
		stack = stack_of(l, raw);
		for (i = 0; i < t->n && (t->groups[i].state != raw->state || !is_same(&t->groups[i].stack, &stack));)
			i++;
		if (i == (t->has_all ? TASK_GROUPS_ALL_MAX : TASK_GROUPS_MAX) ||
		    (raw->state == TASK_WAITS && !stack.n)) {
			t->more = true;
			return 0;
		}
	}
	err = i == t->n ? add_group(l, r, raw, &stack, t) : 0;
	if (err)
		return err;
	*group = i;
	t->groups[i].tasks++;
	t->groups[i].begun += !waits || *waits != raw->hash;
	return 0;
}

static int add_tasks(struct snapshot *l, struct task_reading *r, struct tasks *t)
{
	u32 group;
	int err = 0;

	for (u32 i = 0; i < r->n && !err; i++) {
		err = add_task(l, r, &r->list[i], t, &group);
		t->waiting += r->list[i].state == TASK_WAITS;
		if (err || !t->has_all)
			continue;
		if (!array__room(t->list, t->n_list))
			return -ENOMEM;
		t->list[t->n_list].group = group;
		utf8__copy(t->list[t->n_list++].name, TASK_NAME_MAX, r->list[i].name);
	}
	return err;
}

/* Moves who awaits whom to the result. */
static int add_awaits(struct snapshot *l, struct task_reading *r, struct tasks *t)
{
	int err = task_reading__awaits(l, r);

	t->awaits = r->awaits;
	t->n_awaits = r->n_awaits;
	r->awaits = NULL;
	return err;
}

/* Shorter names first: Task-9 before Task-10. */
static int compare_names(const void *a, const void *b)
{
	const char *first = ((const struct raw_task *)a)->name, *second = ((const struct raw_task *)b)->name;
	size_t lengths[] = { strlen(first), strlen(second) };

	return lengths[0] != lengths[1] ? (lengths[0] < lengths[1] ? -1 : 1) : strcmp(first, second);
}

static int remember_waits(const struct task_reading *r, struct tasks *t)
{
	map__free(&t->waits);
	map__init(&t->waits, sizeof(u64), sizeof(u64));
	for (u32 i = 0; i < r->n; i++) {
		u64 *waits = map__get(&t->waits, &r->list[i].task);

		if (!waits)
			return -ENOMEM;
		*waits = r->list[i].hash;
	}
	return 0;
}

void tasks__free(struct tasks *t)
{
	if (!t)
		return;
	map__free(&t->waits);
	free(t->groups);
	free(t->list);
	free(t->awaits);
	free(t);
}

int snapshot__tasks(struct snapshot *l, struct tasks *t)
{
	struct task_reading r = { .has_all = t->has_all };
	u64 word;
	int err = task_layout__of(l, &r.layout);

	t->n = t->all = t->waiting = 0;
	t->more = false;
	r.coroutine = r.layout.task_coroutine / sizeof(u64);
	if (!err)
		err = read_tasks(l, &r, t);
	/* without memory, as the process has ended or executes another program */
	if ((err || !r.all) && !snapshot__read(l, l->runtime, &word, sizeof(word)))
		err = -ESRCH;
	if (t->has_all && r.n)
		qsort(r.list, r.n, sizeof(*r.list), compare_names);
	if (!err)
		err = add_tasks(l, &r, t);
	if (!err && t->has_all)
		err = add_awaits(l, &r, t);
	if (!err)
		err = remember_waits(&r, t);
	snapshot__forget_pages(l);
	free(r.list);
	free(r.awaits);
	t->all = r.all;
	t->more |= r.more || r.all == TASKS_MAX;
	return err ? err : r.all ? 0 : -ENOENT;
}
