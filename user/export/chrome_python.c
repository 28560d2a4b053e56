// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Functions of Python for Kineto's traces (category python_function), estimated from the Python stacks of calls: a
 * function is on its thread's stack from the first call that it made, directly or not, to the last one. A row is such a
 * function; the rows of a thread that are still open are its stack.
 *
 * Calls arrive in order of their ends, so inner calls come before the call around them. The rows that inner calls
 * opened then begin with the outer call if they are on its stack, and end within it if they are not.
 *
 * The start of a call of an nn.Module is recorded, so each has a row: that of the function _wrapped_call_impl(), which
 * torch.profiler calls by the module, too.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/meta.h"
#include "export/chrome.h"
#include "model/query.h"
#include "output/json_writer.h"
#include "util/array.h"
#include "util/compare.h"
#include "util/path.h"
#include "util/search.h"

/* Open rows of all threads: some 100 MiB. When there are more, all are closed. */
#define OPEN_MAX (1u << 20)

/* Calls of a hostile trace may each have a stack of 1024 other functions. Further rows are not opened. */
#define ROWS_PER_CALL 32
#define ROWS_FREE     (1u << 16)

/* Limits for a function's file and name */
#define FILE_BYTES_MAX 1024
#define NAME_BYTES_MAX 256

/* Gaps of a damaged trace that are stored; the last one then lasts to the end of the further ones. */
#define GAPS_MAX (1u << 16)

/* Modules beyond these have the row of their function only. */
#define MODULES_MAX  (1u << 16)
#define MODULE_CLASS 64 /* bytes of a class's name with its NUL */

struct module_key {
	u64 address;
	char class[MODULE_CLASS];
};

struct module_number {
	u32 entry; /* of p->modules, from 1 */
	u32 of_class; /* from 0, in the order of the first calls, as torch.profiler numbers them */
};

struct thread_key {
	u32 pid, tid;
};

struct python_row {
	u64 number; /* unique in the file */
	u32 frame; /* of the function, in e->stacks */
	u32 caller; /* frame that called it; 0: it is the outermost */
	u32 module; /* entry of p->modules that it is the call of; 0: none */
	struct interval time;
	u64 earliest; /* when the row before it ended */
	struct interval around; /* of a call without a stack in which the row was opened; end 0: none */
};

struct python_thread {
	struct python_row *rows; /* open ones, from the outermost; none begins before, or ends after, the one around it */
	u32 n;
	u64 last_end; /* of its calls */
	u64 closed; /* end of the last closed row */
};

struct stack_call {
	struct interval time;
	u32 path[STACKS_DEEPEST]; /* Python frames from the outermost */
	u32 n; /* 0: the stack is not known */
};

static int on_losses(const struct rows *rows, void *arg)
{
	const struct export *e = arg;
	struct chrome_python *p = &((struct chrome *)e->data)->python;

	ROWS_EACH(v, rows) {
		struct interval gap = { (u64)view__get(&v, "first"), (u64)view__get(&v, "last") };

		u32 pid = (u32)view__get(&v, "pid");

		if (view__get(&v, "reason") != LOSS_RING_FULL || gap.end < gap.start || (pid && pid != e->pid) ||
		    !chrome__is_kineto_family(e, (u8)view__get(&v, "family")))
			continue;
		if (p->n_gaps < GAPS_MAX && !array__push(p->gaps, p->n_gaps, gap))
			return -ENOMEM;
		if (p->n_gaps == GAPS_MAX && gap.end > p->gaps[GAPS_MAX - 1].end)
			p->gaps[GAPS_MAX - 1].end = gap.end;
	}
	return 0;
}

COMPARE_BY(by_start, struct interval, ASCENDING(start))

/* Sorts the gaps and joins those that overlap. */
static void join_gaps(struct chrome_python *p)
{
	u32 n = 0;

	if (p->n_gaps)
		qsort(p->gaps, p->n_gaps, sizeof(*p->gaps), by_start);
	for (u32 i = 0; i < p->n_gaps; i++) {
		if (!n || p->gaps[n - 1].end < p->gaps[i].start)
			p->gaps[n++] = p->gaps[i];
		else if (p->gaps[n - 1].end < p->gaps[i].end)
			p->gaps[n - 1].end = p->gaps[i].end;
	}
	p->n_gaps = n;
}

void chrome_python__init(struct chrome *c)
{
	map__init(&c->python.threads, sizeof(struct thread_key), sizeof(struct python_thread));
	map__init(&c->python.modules, sizeof(struct module_key), sizeof(struct module_number));
	map__init(&c->python.classes, MODULE_CLASS, sizeof(u32));
}

int chrome_python__read_gaps(struct export *e)
{
	struct chrome_python *p = &((struct chrome *)e->data)->python;
	struct query all = { .trace = e->trace };
	const struct trace_facts *f = e->facts;
	int err = 0;

	for (u32 i = 1; !err && i < f->n_windows; i++)
		if (!array__push(p->gaps, p->n_gaps, (struct interval){ f->windows[i - 1].to, f->windows[i].from }))
			err = -ENOMEM;
	if (!err)
		err = query__read_kind(&all, "meta_loss", on_losses, e);
	join_gaps(p);
	return err;
}

void chrome_python__free(struct chrome *c)
{
	MAP_EACH(struct python_thread *t, &c->python.threads)
		free(t->rows);
	map__free(&c->python.threads);
	map__free(&c->python.modules);
	map__free(&c->python.classes);
	free(c->python.gaps);
}

/* Was the recording paused, or were records lost, at any time between the two? */
static bool has_gap(const struct chrome_python *p, u64 from, u64 to)
{
	size_t i = SEARCH(p->n_gaps, k, p->gaps[k].end < from);

	return i < p->n_gaps && p->gaps[i].start <= to;
}

/* Writes the row's name as torch.profiler does. */
static void write_title(const struct export *e, const struct python_row *row, char *title, size_t size)
{
	const struct chrome_python *p = &((const struct chrome *)e->data)->python;
	const struct stack_frame *f = stacks__frame(e->stacks, row->frame);
	const char *name = strrchr(f->name, '.');

	/* torch.profiler has names without their class; "<locals>.f" is f */
	name = name && name[1] ? name + 1 : f->name;
	if (row->module)
		snprintf(title, size, "nn.Module: %s_%u",
			 ((const struct module_key *)map__key(&p->modules, row->module - 1))->class,
			 ((const struct module_number *)map__value(&p->modules, row->module - 1))->of_class);
	else
		snprintf(title, size, "%.*s(%u): %.*s", FILE_BYTES_MAX, f->file, f->first_line, NAME_BYTES_MAX,
			 *name ? name : "[unknown]");
}

static void put_row(struct export *e, const struct thread_key *at, const struct python_row *row, u64 parent)
{
	const struct chrome_python *p = &((const struct chrome *)e->data)->python;
	char title[FILE_BYTES_MAX + NAME_BYTES_MAX + 32];

	write_title(e, row, title, sizeof(title));
	chrome__next_event(e);
	fputs("{\"ph\":\"X\",\"name\":", e->out);
	json__print_text(e->out, title, strlen(title));
	fprintf(e->out, ",\"cat\":\"python_function\",\"pid\":%u,\"tid\":%u,\"ts\":", chrome__number(at->pid),
		chrome__number(at->tid));
	chrome__put_time(e, row->time.start);
	chrome__put_dur(e, row->time.start, row->time.end);
	fprintf(e->out, ",\"args\":{\"Python id\":%llu,\"Python parent id\":", row->number);
	fprintf(e->out, parent ? "%llu" : "null", parent);
	if (row->module)
		fprintf(e->out, ",\"Python module id\":%u",
			((const struct module_number *)map__value(&p->modules, row->module - 1))->of_class);
	fprintf(e->out, ",\"estimated\":true,\"Ev Idx\":%llu}}", chrome_kineto__next_index(e->data));
}

/* Writes the open rows from number `first` on, the innermost first. */
static void close_rows(struct export *e, const struct thread_key *at, struct python_thread *t, u32 first)
{
	struct chrome_python *p = &((struct chrome *)e->data)->python;

	while (t->n > first) {
		const struct python_row *row = &t->rows[--t->n];

		put_row(e, at, row, t->n ? row[-1].number : 0);
		p->open--;
		t->closed = row->time.end > t->closed ? row->time.end : t->closed;
	}
}

void chrome_python__close(struct export *e)
{
	struct chrome_python *p = &((struct chrome *)e->data)->python;

	MAP_EACH_ENTRY(struct python_thread *t, const struct thread_key *at, &p->threads) {
		close_rows(e, at, t, 0);
		free(t->rows);
	}
	map__free(&p->threads);
}

/* Fills the outermost Python frames of a stack, up to those that are left out. */
static void read_path(const struct stacks *s, u32 stack, struct stack_call *call)
{
	u32 ids[STACKS_DEEPEST], n = stacks__path(s, stack, ids, STACKS_DEEPEST);

	call->n = 0;
	for (u32 i = 0; i < n; i++) {
		s64 kind = stacks__frame(s, ids[i])->kind;

		if (kind == FRAME_CUT)
			return;
		if (kind == FRAME_PYTHON)
			call->path[call->n++] = ids[i];
	}
}

/* Do both frames execute the same call? */
static bool is_same_position(const struct stacks *s, u32 a, u32 b)
{
	const struct stack_frame *x = stacks__frame(s, a), *y = stacks__frame(s, b);

	return a == b || (x && y && x->line == y->line && x->offset == y->offset);
}

/* Returns how many of the open rows are on the call's stack: functions with equal callers at equal positions. */
static u32 count_common(const struct stacks *s, const struct python_thread *t, const struct stack_call *call)
{
	u32 i;

	for (i = 0; i < t->n && i < call->n; i++) {
		const struct python_row *row = &t->rows[i];

		if (row->frame != call->path[i] &&
		    stacks__frame(s, row->frame)->code != stacks__frame(s, call->path[i])->code)
			break;
		if (i && !is_same_position(s, row->caller, call->path[i - 1]))
			break;
	}
	return i;
}

/*
 * Lets row i begin at `start` or, as viewers take the first of two spans with equal starts for the outer one, some ns
 * before, by its distance from the row `end` that is directly around what begins then.
 */
static void begin_at(struct python_thread *t, u32 i, u32 end, u64 start)
{
	struct python_row *row = &t->rows[i];
	u64 early = start > end - i ? start - (end - i) : 0;

	early = early > row->earliest ? early : row->earliest;
	if (i && early < t->rows[i - 1].time.start)
		early = t->rows[i - 1].time.start;
	row->time.start = early < start ? early : start;
}

static void extend(struct python_row *row, u64 end)
{
	row->time.end = end > row->time.end ? end : row->time.end;
}

/* The first `common` rows continue after the call of unknown stack in which they began: extend them around it. */
static void leave_calls_around(struct python_thread *t, u32 common)
{
	for (u32 i = 0; i < common; i++) {
		struct python_row *row = &t->rows[i];

		if (row->around.end && row->around.start < row->time.start)
			begin_at(t, i, common, row->around.start);
		if (row->around.end)
			extend(row, row->around.end);
		row->around.end = 0;
	}
}

/* Adds a call of unknown stack. The rows from number `inside` on were opened in it. */
static void add_unknown(struct export *e, const struct thread_key *at, struct python_thread *t,
			const struct stack_call *call, u32 inside)
{
	for (u32 i = inside; i < t->n; i++) {
		if (t->rows[i].earliest > call->time.start) {
			/* it can't be extended to contain the call */
			close_rows(e, at, t, i);
			break;
		}
		t->rows[i].around = call->time;
	}
}

/*
 * Does the stack agree with those of earlier calls? It may not in a damaged trace, or if a line calls an operator and a
 * function in turn.
 */
static bool agrees(const struct python_thread *t, const struct stack_call *call, u32 common, u32 inside)
{
	for (u32 i = inside; i < common; i++)
		if (t->rows[i].earliest > call->time.start)
			return false;
	if (common < t->n && common < inside && t->rows[common].time.end > call->time.start)
		return false;
	return common == call->n ||
	       (t->closed <= call->time.start && (common == t->n || t->rows[common].time.end <= call->time.start));
}

static int open_rows(struct chrome_python *p, struct python_thread *t, const struct stack_call *call)
{
	u64 last_end = t->last_end <= call->time.start ? t->last_end : 0;

	while (t->n < call->n) {
		u32 i = t->n;
		struct python_row row = {
			.number = ++p->numbers,
			.frame = call->path[i],
			.caller = i ? call->path[i - 1] : 0,
			.time = call->time,
			.earliest = t->closed,
		};

		if (!array__push(t->rows, t->n, row))
			return -ENOMEM;
		p->open++;
		begin_at(t, i, call->n, call->time.start);
		if (t->rows[i].time.start < last_end)
			t->rows[i].time.start = last_end;
	}
	return 0;
}

static int add_known(struct export *e, const struct thread_key *at, struct python_thread *t,
		     const struct stack_call *call, u32 common, u32 inside)
{
	struct chrome_python *p = &((struct chrome *)e->data)->python;

	close_rows(e, at, t, common);
	leave_calls_around(t, common);
	for (u32 i = inside; i < common; i++)
		begin_at(t, i, call->n, call->time.start);
	for (u32 i = 0; i < common; i++)
		extend(&t->rows[i], call->time.end);
	return open_rows(p, t, call);
}

/* No more than common_max of the open rows are on the call's stack. */
static int add_call(struct export *e, const struct thread_key *at, struct python_thread *t,
		    const struct stack_call *call, u32 common_max)
{
	struct chrome_python *p = &((struct chrome *)e->data)->python;
	const struct interval *time = &call->time;
	u32 common, inside;
	int err = 0;

	if (t->n && t->last_end < time->start && has_gap(p, t->last_end, time->start))
		close_rows(e, at, t, 0);
	for (inside = 0; inside < t->n && t->rows[inside].time.start < time->start; inside++)
		;
	common = count_common(e->stacks, t, call);
	common = common < common_max ? common : common_max;
	p->calls++;
	if (!call->n || !agrees(t, call, common, inside) ||
	    p->numbers + (call->n - common) > ROWS_PER_CALL * p->calls + ROWS_FREE)
		add_unknown(e, at, t, call, inside);
	else
		err = add_known(e, at, t, call, common, inside);
	/* rows in which the call was made, though its stack may not be known */
	for (u32 i = 0; i < inside && i < t->n; i++)
		if (t->rows[i].time.end > time->start)
			extend(&t->rows[i], time->end);
	t->last_end = time->end > t->last_end ? time->end : t->last_end;
	return err;
}

/* Returns the thread with its stack at a call; NULL: no memory. */
static struct python_thread *read_call(struct export *e, const struct thread_key *at, u32 stack,
				       struct stack_call *call)
{
	struct chrome_python *p = &((struct chrome *)e->data)->python;

	if (p->open > OPEN_MAX)
		chrome_python__close(e);
	read_path(e->stacks, stack, call);
	return map__get(&p->threads, at);
}

int chrome_python__add(struct export *e, u32 pid, u32 tid, const struct interval *time, u32 stack)
{
	struct thread_key at = { pid, tid };
	struct stack_call call = { .time = *time };
	struct python_thread *t = read_call(e, &at, stack, &call);

	return t ? add_call(e, &at, t, &call, call.n) : -ENOMEM;
}

/* Sets *entry to that of the module in p->modules; 0: there are too many. Returns 0 or -ENOMEM. */
static int find_module(struct chrome_python *p, const struct view *v, u32 *entry)
{
	const struct schema_field *name = schema_event__field(v->event, "name");
	struct module_key key = { .address = (u64)view__get(v, "module") };
	struct module_number *number;
	u32 len, *of_class;
	const char *text = name ? view__text(v, name, &len) : NULL;

	*entry = 0;
	memcpy(key.class, text ?: "", text ? (len < MODULE_CLASS ? len : MODULE_CLASS - 1) : 0);
	if (!*key.class || (p->modules.n == MODULES_MAX && !map__find(&p->modules, &key)))
		return 0;
	number = map__get(&p->modules, &key);
	if (!number)
		return -ENOMEM;
	if (!number->entry) {
		of_class = map__get(&p->classes, key.class);
		if (!of_class)
			return -ENOMEM;
		*number = (struct module_number){ p->modules.n, (*of_class)++ };
	}
	*entry = number->entry;
	return 0;
}

int chrome_python__add_module(struct export *e, const struct view *v)
{
	struct thread_key at = { (u32)view__get(v, "pid"), (u32)view__get(v, "tid") };
	u64 time = (u64)view__get(v, "time");
	struct stack_call call = { .time = { time, time } };
	struct python_thread *t = read_call(e, &at, (u32)view__get(v, "stack"), &call);
	struct chrome_python *p = &((struct chrome *)e->data)->python;
	u64 numbers = p->numbers;
	u32 row, module;
	int err = t ? find_module(p, v, &module) : -ENOMEM;

	if (err || !call.n)
		return err;
	/* _call_impl() is on top; mostly _wrapped_call_impl() calls it */
	row = call.n - 1;
	if (row && path__ends_with(stacks__frame(e->stacks, call.path[row - 1])->name, "_wrapped_call_impl"))
		row--;
	err = add_call(e, &at, t, &call, row);
	if (!err && t->n == call.n && t->rows[row].number > numbers)
		t->rows[row].module = module;
	return err;
}
