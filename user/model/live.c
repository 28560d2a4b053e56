// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whose doing a wait for the GIL was is told more simply here than in report gil, which has the whole trace:
 * a wait that timed out was for whom the holder's stack names at that moment, one that a signal ended for who
 * dropped it, and if that was not seen, for whom the wait before it in this thread was.
 */
#include "model/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/names.h"
#include "model/stacks.h"
#include "util/map.h"

#define FRAMES_MAX   1000000
#define CODES_MAX    200000
#define TEXTS_MAX    (64 << 20) /* bytes */
#define WAITS_MAX    500000 /* in an interval */
#define DEPTH_MAX    512
#define WAIT_TIMEOUT 2 /* enum gil_wait_end */
#define UNKNOWN	     0xffffffffu /* a function */

struct frame {
	u32 caller, code;
	u8 kind;
};

struct code {
	u32 name, file; /* strings */
	u8 kind;
};

struct wait {
	u64 gil, start, end;
	u32 pid, tid, number, stack, holder_stack;
	bool timeout;
};

struct gil_key {
	u64 gil;
	u32 pid, unused;
};

struct drop_key {
	u32 waiter, number;
};

struct thread {
	u32 blamed; /* function that the last wait was for */
	u32 stack; /* of that wait: the same attempt */
};

struct pair_key {
	u32 pid, holder, waiter; /* functions */
};

struct sum {
	u64 waits, ns;
};

struct function {
	u64 self_ns, total_ns;
	u64 last; /* number of the sample that it was counted for */
};

struct live {
	const struct schema *schema;
	struct names *names;
	struct map frames, codes; /* by id */
	size_t texts; /* bytes that names has taken in */
	struct map gil_numbers; /* struct gil_key -> u32, from 1 */
	struct map drops, old_drops; /* struct drop_key -> u32 stack; of this interval and the one before */
	struct map threads; /* tid -> struct thread */
	struct map functions; /* code -> struct function */
	struct wait *waits;
	u32 n_waits, allocated;
	u64 waits_lost;
	u64 sample, samples, samples_ns;
	u64 slices_ns, pauses_ns;
	u64 last_cut;
	struct live_view view;
};

int live__new(struct live **out, const struct schema *schema)
{
	struct live *l = calloc(1, sizeof(*l));
	int err = l ? names__create(&l->names, schema) : -ENOMEM;

	if (err) {
		free(l);
		return err;
	}
	l->schema = schema;
	map__init(&l->frames, sizeof(u32), sizeof(struct frame));
	map__init(&l->codes, sizeof(u32), sizeof(struct code));
	map__init(&l->gil_numbers, sizeof(struct gil_key), sizeof(u32));
	map__init(&l->drops, sizeof(struct drop_key), sizeof(u32));
	map__init(&l->old_drops, sizeof(struct drop_key), sizeof(u32));
	map__init(&l->threads, sizeof(u32), sizeof(struct thread));
	map__init(&l->functions, sizeof(u32), sizeof(struct function));
	*out = l;
	return 0;
}

static void free_view(struct live_view *v)
{
	free(v->gils);
	free(v->pairs);
	free(v->functions);
	*v = (struct live_view){};
}

void live__free(struct live *l)
{
	if (!l)
		return;
	free_view(&l->view);
	names__free(l->names);
	map__free(&l->frames);
	map__free(&l->codes);
	map__free(&l->gil_numbers);
	map__free(&l->drops);
	map__free(&l->old_drops);
	map__free(&l->threads);
	map__free(&l->functions);
	free(l->waits);
	free(l);
}

static int on_frame(struct live *l, const struct view *v)
{
	u32 id = (u32)view__get(v, "frame");
	struct frame *f = id && l->frames.n < FRAMES_MAX ? map__get(&l->frames, &id) : NULL;

	if (f)
		*f = (struct frame){ (u32)view__get(v, "caller"), (u32)view__get(v, "code"), (u8)view__get(v, "kind") };
	return 0;
}

static int on_code(struct live *l, const struct view *v)
{
	u32 id = (u32)view__get(v, "code");
	struct code *c = id && l->codes.n < CODES_MAX ? map__get(&l->codes, &id) : NULL;

	if (c)
		*c = (struct code){ (u32)view__get(v, "name"), (u32)view__get(v, "file"), (u8)view__get(v, "kind") };
	return 0;
}

static int on_wait(struct live *l, const struct view *v)
{
	struct wait *bigger;

	if (l->n_waits == WAITS_MAX) {
		l->waits_lost++;
		return 0;
	}
	if (l->n_waits == l->allocated) {
		bigger = reallocarray(l->waits, l->allocated * 2 + 1024, sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		l->waits = bigger;
		l->allocated = l->allocated * 2 + 1024;
	}
	l->waits[l->n_waits++] = (struct wait){
		.gil = (u64)view__get(v, "gil"),
		.start = (u64)view__get(v, "start"),
		.end = (u64)view__get(v, "time"),
		.pid = (u32)view__get(v, "pid"),
		.tid = (u32)view__get(v, "tid"),
		.number = (u32)view__get(v, "number"),
		.stack = (u32)view__get(v, "stack"),
		.holder_stack = (u32)view__get(v, "holder_stack"),
		.timeout = view__get(v, "result") == WAIT_TIMEOUT,
	};
	return 0;
}

static int on_drop(struct live *l, const struct view *v)
{
	struct drop_key key = { (u32)view__get(v, "waiter"), (u32)view__get(v, "number") };
	u32 *stack = l->drops.n < WAITS_MAX ? map__get(&l->drops, &key) : NULL;

	if (stack)
		*stack = (u32)view__get(v, "stack");
	return 0;
}

/* A slice in which GILs were measured, and the pause before it. */
static int on_slice(struct live *l, const struct view *v)
{
	l->slices_ns += (u64)view__get(v, "time") - (u64)view__get(v, "start");
	l->pauses_ns += (u64)view__get(v, "pause");
	return 0;
}

/* Does Python code run in it, with what that calls? */
static bool has_python(const struct live *l, u32 id)
{
	for (u32 depth = 0; id && depth < DEPTH_MAX; depth++) {
		const struct frame *frame = map__find(&l->frames, &id);

		if (!frame)
			break;
		if (frame->kind == FRAME_PYTHON)
			return true;
		id = frame->caller;
	}
	return false;
}

/* As report python: what Python calls in C is the function's own. Threads without Python have their native functions. */
static int on_sample(struct live *l, const struct view *v)
{
	u64 period = (u64)view__get(v, "period");
	u32 id = (u32)view__get(v, "stack");
	bool python = has_python(l, id), innermost = true;

	l->sample++;
	l->samples++;
	l->samples_ns += period;
	for (u32 depth = 0; id && depth < DEPTH_MAX; depth++) {
		const struct frame *frame = map__find(&l->frames, &id);
		struct function *f;

		if (!frame)
			break;
		id = frame->caller;
		if (!frame->code || (python && frame->kind != FRAME_PYTHON))
			continue;
		f = map__get(&l->functions, &frame->code);
		if (!f)
			return -ENOMEM;
		f->self_ns += innermost ? period : 0;
		f->total_ns += f->last != l->sample ? period : 0;
		f->last = l->sample;
		innermost = false;
	}
	return 0;
}

int live__feed(struct live *l, const void *record, u32 size)
{
	static const struct {
		const char *event;
		int (*fn)(struct live *l, const struct view *v);
	} kinds[] = {
		{ "meta_frame", on_frame }, { "meta_code", on_code },  { "gil_wait", on_wait },
		{ "gil_drop", on_drop },    { "gil_slice", on_slice }, { "sample_cpu", on_sample },
	};
	struct view v;
	int err = 0;

	if (!view__of_record(&v, l->schema, record, size))
		return 0;
	/* texts stay for ever in there */
	if (!strcmp(v.event->name, "meta_string"))
		l->texts += size;
	if (strcmp(v.event->name, "meta_string") || l->texts < TEXTS_MAX)
		err = names__feed(l->names, &v);
	for (u32 i = 0; !err && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(v.event->name, kinds[i].event))
			return kinds[i].fn(l, &v);
	return err;
}

static struct stack_frame frame_of(const struct live *l, u32 code_id)
{
	const struct code *c = map__find(&l->codes, &code_id);

	return (struct stack_frame){
		.code = code_id,
		.kind = c ? c->kind : 0,
		.name = c ? names__string(l->names, c->name) : "",
		.file = c ? names__string(l->names, c->file) : "",
	};
}

/* The function of a stack that is the user's own code, else the innermost. */
static u32 top_user(const struct live *l, u32 id)
{
	u32 innermost = UNKNOWN;

	for (u32 depth = 0; id && depth < DEPTH_MAX; depth++) {
		const struct frame *frame = map__find(&l->frames, &id);
		struct stack_frame f;

		if (!frame)
			break;
		f = frame_of(l, frame->code);
		if (frame->code && stack_frame__is_users(&f))
			return frame->code;
		if (innermost == UNKNOWN && frame->code)
			innermost = frame->code;
		id = frame->caller;
	}
	return innermost;
}

static void name_function(const struct live *l, u32 code, char *buf, size_t size, const char *unknown)
{
	struct stack_frame f;

	if (code == UNKNOWN) {
		snprintf(buf, size, "%s", unknown);
		return;
	}
	f = frame_of(l, code);
	stack_frame__function(&f, buf, size);
}

/* Whose doing a wait was; see above. */
static u32 holder_of(struct live *l, const struct wait *w)
{
	struct drop_key key = { w->tid, w->number };
	struct thread *t = map__get(&l->threads, &w->tid);
	u32 *dropped = map__find(&l->drops, &key), blamed = UNKNOWN;

	if (!dropped)
		dropped = map__find(&l->old_drops, &key);
	if (w->timeout)
		blamed = top_user(l, w->holder_stack);
	else if (dropped)
		blamed = top_user(l, *dropped);
	if (blamed == UNKNOWN && t && t->stack == w->stack && w->stack)
		blamed = t->blamed;
	if (t)
		*t = (struct thread){ blamed, w->stack };
	return blamed;
}

static int compare_waits(const void *a, const void *b)
{
	const struct wait *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->gil != y->gil)
		return x->gil < y->gil ? -1 : 1;
	return (x->start > y->start) - (x->start < y->start);
}

static int compare_loads(const void *a, const void *b)
{
	const struct live_gil *x = a, *y = b;

	return (x->load_percent < y->load_percent) - (x->load_percent > y->load_percent);
}

static int compare_pairs(const void *a, const void *b)
{
	const struct live_pair *x = a, *y = b;

	return (x->wait_ns < y->wait_ns) - (x->wait_ns > y->wait_ns);
}

static int compare_functions(const void *a, const void *b)
{
	const struct live_function *x = a, *y = b;

	if (x->self_ns != y->self_ns)
		return x->self_ns < y->self_ns ? 1 : -1;
	return (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
}

static u32 number_of(struct live *l, const struct wait *w)
{
	struct gil_key key = { w->gil, w->pid, 0 };
	u32 *number = map__get(&l->gil_numbers, &key), n = 0;

	if (!number)
		return 0;
	if (!*number) {
		for (u32 i = 0; i < l->gil_numbers.n; i++)
			n += ((const struct gil_key *)map__key(&l->gil_numbers, i))->pid == w->pid;
		*number = n;
	}
	return *number - 1;
}

/* Waits [from, to) are of one GIL, by their start. */
static void sum_gil(struct live *l, u32 from, u32 to, double weight, struct live_gil *out)
{
	const struct live_view *v = &l->view;
	u64 covered = 0, until = v->from, measured = v->to - v->from;
	const char *name = names__comm(l->names, l->waits[from].pid, 0);
	struct map tids;

	map__init(&tids, sizeof(u32), 1);
	*out = (struct live_gil){ .pid = l->waits[from].pid, .number = number_of(l, &l->waits[from]) };
	snprintf(out->name, sizeof(out->name), "%s", name ? name : "");
	for (u32 i = from; i < to; i++) {
		const struct wait *w = &l->waits[i];
		u64 start = w->start > until ? w->start : until, end = w->end < v->to ? w->end : v->to;
		u32 deep = 0;

		if (end > start) {
			covered += end - start;
			until = end;
		}
		out->waits++;
		out->wait_ns += w->end - w->start;
		map__get(&tids, &w->tid);
		for (u32 k = i + 1; k-- > from && i - k < 64;)
			deep += l->waits[k].end > w->start;
		out->deepest = deep > out->deepest ? deep : out->deepest;
	}
	out->threads = tids.n;
	map__free(&tids);
	out->waits = (u64)((double)out->waits * weight);
	out->wait_ns = (u64)((double)out->wait_ns * weight);
	out->load_percent = measured ? 100.0 * (double)covered * weight / (double)measured : 0;
	if (out->load_percent > 100)
		out->load_percent = 100;
}

static int sum_gils(struct live *l, double weight)
{
	struct live_view *v = &l->view;
	u32 from = 0;

	qsort(l->waits, l->n_waits, sizeof(*l->waits), compare_waits);
	for (u32 i = 1; i <= l->n_waits; i++) {
		struct live_gil *bigger;

		if (i < l->n_waits && l->waits[i].gil == l->waits[from].gil && l->waits[i].pid == l->waits[from].pid)
			continue;
		bigger = reallocarray(v->gils, v->n_gils + 1, sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		v->gils = bigger;
		sum_gil(l, from, i, weight, &v->gils[v->n_gils++]);
		from = i;
	}
	if (v->n_gils)
		qsort(v->gils, v->n_gils, sizeof(*v->gils), compare_loads);
	return 0;
}

static int sum_pairs(struct live *l, double weight)
{
	struct live_view *v = &l->view;
	struct map pairs;
	u64 all = 0;
	int err = 0;

	map__init(&pairs, sizeof(struct pair_key), sizeof(struct sum));
	for (u32 i = 0; i < l->n_waits && !err; i++) {
		const struct wait *w = &l->waits[i];
		struct pair_key key = { w->pid, holder_of(l, w), top_user(l, w->stack) };
		struct sum *sum = map__get(&pairs, &key);

		if (!sum) {
			err = -ENOMEM;
			break;
		}
		sum->waits++;
		sum->ns += w->end - w->start;
		all += w->end - w->start;
	}
	v->pairs = calloc(pairs.n + 1, sizeof(*v->pairs));
	if (!v->pairs)
		err = -ENOMEM;
	for (u32 i = 0; i < pairs.n && !err; i++) {
		const struct pair_key *k = map__key(&pairs, i);
		const struct sum *sum = map__value(&pairs, i);
		struct live_pair *p = &v->pairs[v->n_pairs++];

		p->pid = k->pid;
		name_function(l, k->holder, p->holder, sizeof(p->holder), "holder not seen");
		name_function(l, k->waiter, p->waiter, sizeof(p->waiter), "?");
		p->waits = (u64)((double)sum->waits * weight);
		p->wait_ns = (u64)((double)sum->ns * weight);
		p->share_percent = all ? 100.0 * (double)sum->ns / (double)all : 0;
	}
	if (v->n_pairs)
		qsort(v->pairs, v->n_pairs, sizeof(*v->pairs), compare_pairs);
	map__free(&pairs);
	return err;
}

static int sum_functions(struct live *l)
{
	struct live_view *v = &l->view;
	double all = l->samples_ns ? (double)l->samples_ns : 1;

	v->samples = l->samples;
	v->samples_ns = l->samples_ns;
	v->functions = calloc(l->functions.n + 1, sizeof(*v->functions));
	if (!v->functions)
		return -ENOMEM;
	for (u32 i = 0; i < l->functions.n; i++) {
		const struct function *f = map__value(&l->functions, i);
		struct live_function *out = &v->functions[v->n_functions];

		if (!f->total_ns)
			continue;
		v->n_functions++;
		name_function(l, *(const u32 *)map__key(&l->functions, i), out->name, sizeof(out->name), "?");
		out->self_ns = f->self_ns;
		out->total_ns = f->total_ns;
		out->self_percent = 100.0 * (double)f->self_ns / all;
		out->total_percent = 100.0 * (double)f->total_ns / all;
	}
	if (v->n_functions)
		qsort(v->functions, v->n_functions, sizeof(*v->functions), compare_functions);
	return 0;
}

/* What was of the interval goes; threads that no longer wait would stay for ever. */
static void forget(struct live *l)
{
	struct map swap = l->old_drops;

	map__free(&swap);
	map__init(&swap, sizeof(struct drop_key), sizeof(u32));
	l->old_drops = l->drops;
	l->drops = swap;
	map__free(&l->functions);
	map__init(&l->functions, sizeof(u32), sizeof(struct function));
	if (l->threads.n > 65536) {
		map__free(&l->threads);
		map__init(&l->threads, sizeof(u32), sizeof(struct thread));
	}
	l->n_waits = 0;
	l->samples = l->samples_ns = l->slices_ns = l->pauses_ns = 0;
}

int live__cut(struct live *l, u64 now, struct live_view *out)
{
	double weight = l->slices_ns ? 1 + (double)l->pauses_ns / (double)l->slices_ns : 1;
	int err;

	free_view(&l->view);
	l->view.from = l->last_cut ? l->last_cut : now;
	l->view.to = now;
	l->view.sliced = l->pauses_ns != 0;
	l->last_cut = now;
	err = sum_gils(l, weight);
	if (!err)
		err = sum_pairs(l, weight);
	if (!err)
		err = sum_functions(l);
	forget(l);
	*out = l->view;
	return err;
}
