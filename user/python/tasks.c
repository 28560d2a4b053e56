// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "python/tasks.h"

#include "python/objects.h"
#include "python/task_layout.h"
#include "util/array.h"
#include "util/path.h"
#include "util/python_library.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TASKS_MAX 4096
/* The first bytes of a _asyncio.Task that are searched for its coroutine. */
#define TASK_FROM 16
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
/* From 3.14 on references in frames have a tag in their lowest bits. */
#define TAG_MASK 7ULL

struct raw_task {
	struct {
		u64 code, locals;
		u64 name; /* the coroutine's; 0: its code object has it */
		s64 offset;
		u32 words; /* locals and stack */
	} frames[TASK_FRAMES_MAX]; /* outermost first */
	u32 n;
	u64 task, waits; /* addresses of the task and of the future that it waits for */
	/*
	 * a hash of that address and of what is on its coroutines' stacks: the next future often gets the same address
	 */
	u64 state;
};

struct reading {
	struct task_layout layout;
	u32 coroutine; /* the word of a task that is its coroutine; 0: not known yet */
	struct raw_task *list; /* tasks that wait */
	u32 n, all;
	u32 nodes; /* of lists, that were read */
	u32 examined; /* words of stacks */
	bool more; /* lists were read in part */
};

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
	code &= ~TAG_MASK;
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
		t->state = t->state * 31 + words[i];
	/* from 3.15 on there is a word for a virtual iterator above the object, which is NULL here */
	if (l->layout.version >= 0x030f && n > 1 && !(words[n - 1] & ~TAG_MASK))
		n--;
	return words[n - 1] & ~TAG_MASK;
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

/* Adds a task, whose first words were read. */
static int add_raw_task(struct snapshot *l, struct reading *r, u64 task, const u64 *words)
{
	struct raw_task t = { .task = task };

	if (!r->coroutine)
		r->coroutine = find_coroutine(l, words);
	if (!r->coroutine || object__type(l, words[r->coroutine]) != OBJECT_COROUTINE)
		return 0;
	r->all++;
	/* task_fut_waiter, the member before it: without one the task runs or is about to */
	t.waits = words[r->coroutine - 1];
	if (!t.waits)
		return 0;
	t.state = t.waits;
	walk(l, &r->layout, words[r->coroutine], &t);
	/* the task ran meanwhile */
	if (!t.n || snapshot__word(l, t.task + (r->coroutine - 1) * sizeof(u64)) != t.waits)
		return 0;
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
static int read_list(struct snapshot *l, struct reading *r, u64 head)
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
static int read_list_anew(struct snapshot *l, struct reading *r, u64 head)
{
	struct reading before = *r;
	int err = -EAGAIN;

	for (u32 i = 0; i < ATTEMPTS_MAX && err == -EAGAIN; i++) {
		r->n = before.n;
		r->all = before.all;
		err = read_list(l, r, head);
	}
	r->more |= err == -EAGAIN;
	return err == -EAGAIN ? 0 : err;
}

/* Reads the lists of the main interpreter: those of its threads, and that of the tasks of threads that have ended. */
static int read_lists(struct snapshot *l, struct reading *r)
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
static int read_tasks(struct snapshot *l, struct reading *r, struct tasks *t)
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
static bool is_holder(struct snapshot *l, struct reading *r, const struct raw_task *t, u64 object)
{
	for (u32 i = 0; i < t->n && r->examined < HOLDERS_MAX; i++) {
		u32 n = t->frames[i].words < STACK_MAX ? t->frames[i].words : STACK_MAX;
		u64 words[STACK_MAX + 1] = { 0 }, self = 0;

		r->examined += n;
		if (i + 1 < t->n)
			self = snapshot__word(l, t->frames[i + 1].locals) & ~TAG_MASK;
		if (self == object ||
		    !snapshot__read(l, t->frames[i].locals + (t->frames[i].words - n) * sizeof(u64), words, n * 8))
			continue;
		for (u32 k = 0; k < n; k++) {
			u64 word = words[k] & ~TAG_MASK;
			enum object_type type = object__type(l, word);

			if ((type == OBJECT_METHOD && snapshot__word(l, word + METHOD_SELF) == object) ||
			    (type == OBJECT_FUNCTION && (words[k + 1] & ~TAG_MASK) == object))
				return true;
		}
	}
	return false;
}

static void find_holder(struct snapshot *l, struct reading *r, struct task_group *g)
{
	for (u32 i = 0; i < r->n && !g->holder.n; i++)
		if (is_holder(l, r, &r->list[i], g->object))
			g->holder = stack_of(l, &r->list[i]);
}

/* Was the outermost coroutine called with a stream, as a server does for each client? */
static bool serves(struct snapshot *l, const struct task_layout *p, const struct raw_task *t)
{
	s32 arguments;

	if (!snapshot__read(l, t->frames[0].code + p->arguments, &arguments, sizeof(arguments)))
		return false;
	/* self, the reader and the writer */
	for (s32 i = 0; i < 3 && i < arguments && i < (s32)t->frames[0].words; i++)
		if (object__type(l, snapshot__word(l, t->frames[0].locals + (u32)i * 8) & ~TAG_MASK) == OBJECT_STREAM)
			return true;
	return false;
}

static void add_task(struct snapshot *l, struct reading *r, const struct raw_task *raw, struct tasks *t)
{
	struct task_stack stack = stack_of(l, raw);
	struct task_group *g;
	const u64 *waits;
	u32 i = 0;

	while (i < t->n && !is_same(&t->groups[i].stack, &stack))
		i++;
	if (i == TASK_GROUPS_MAX || !stack.n) {
		t->more = true;
		return;
	}
	g = &t->groups[i];
	if (i == t->n) {
		*g = (struct task_group){ .stack = stack, .serves = serves(l, &r->layout, raw) };
		g->object = snapshot__word(l, raw->frames[raw->n - 1].locals) & ~TAG_MASK;
		t->n++;
		if (is_lock(&stack.frames[0]) && object__is_address(g->object))
			find_holder(l, r, g);
	}
	g->tasks++;
	waits = map__find(&t->waits, &raw->task);
	g->begun += !waits || *waits != raw->state;
}

static int remember_waits(const struct reading *r, struct tasks *t)
{
	map__free(&t->waits);
	map__init(&t->waits, sizeof(u64), sizeof(u64));
	for (u32 i = 0; i < r->n; i++) {
		u64 *waits = map__get(&t->waits, &r->list[i].task);

		if (!waits)
			return -ENOMEM;
		*waits = r->list[i].state;
	}
	return 0;
}

void tasks__free(struct tasks *t)
{
	if (t)
		map__free(&t->waits);
	free(t);
}

int snapshot__tasks(struct snapshot *l, struct tasks *t)
{
	struct reading r = { .list = NULL };
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
	for (u32 i = 0; i < r.n && !err; i++)
		add_task(l, &r, &r.list[i], t);
	if (!err)
		err = remember_waits(&r, t);
	free(r.list);
	t->all = r.all;
	t->waiting = r.n;
	t->more |= r.more || r.all == TASKS_MAX;
	return err ? err : r.all ? 0 : -ENOENT;
}
