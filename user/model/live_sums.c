// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Attributes waits for the GIL more simply than report gil, which has the whole trace. A timed-out wait is
 * attributed to the function on top of the holder's stack at that moment, a signalled one to the thread that
 * dropped the GIL, and if that is not known, to the holder of the thread's previous wait. Short waits and holds without
 * a stack get the last one of the same thread.
 */
#include "model/live_private.h"

#include "util/array.h"
#include "util/compare.h"
#include "util/saturate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

u32 live__user_code(struct live *l, u32 id)
{
	u32 innermost = UNKNOWN;

	for (u32 depth = 0; id && depth < DEPTH_MAX; depth++) {
		const struct frame *frame = recent__find(&l->frames, &id);
		const struct code *c;

		if (!frame)
			break;
		c = recent__find(&l->codes, &frame->code);
		if (c && c->users)
			return frame->code;
		if (innermost == UNKNOWN && frame->code)
			innermost = frame->code;
		id = frame->caller;
	}
	return innermost;
}

static void name_function(struct live *l, u32 code, char *buf, size_t size, const char *unknown)
{
	const struct code *c = code == UNKNOWN ? NULL : recent__find(&l->codes, &code);

	snprintf(buf, size, "%s", code == UNKNOWN ? unknown : c ? c->text : "[unknown]");
}

/* Returns the stack of the hold that made the thread wait. */
static u32 holder_stack(struct live *l, const struct wait *w)
{
	struct drop_key key = { w->tid, w->number };
	const u32 *dropped = map__find(&l->drops, &key);
	const struct thread *holder;
	u32 stack;

	if (!dropped)
		dropped = map__find(&l->old_drops, &key);
	stack = w->timeout ? w->holder_stack : dropped ? *dropped : 0;
	if (stack)
		return stack;
	/* a short hold without a stack (GIL_STACK_NS) */
	holder = w->holder ? recent__find(&l->threads, &w->holder) : NULL;
	return holder ? holder->hold_stack : 0;
}

/* Returns the pair of functions that a wait is attributed to, see above. */
static struct pair_key pair_of(struct live *l, const struct wait *w)
{
	u32 blamed = live__user_code(l, holder_stack(l, w)), stack = w->stack;
	struct thread *t = recent__get(&l->threads, &w->tid);

	if (blamed == UNKNOWN && t && t->stack == stack && stack)
		blamed = t->last_holder;
	if (t) {
		/* a short wait without a stack */
		stack = stack ? stack : t->stack;
		t->last_holder = blamed;
		t->stack = stack;
	}
	return (struct pair_key){ w->pid, blamed, live__user_code(l, stack) };
}

COMPARE_BY(compare_waits, struct wait, ASCENDING(pid), ASCENDING(gil), ASCENDING(start))

COMPARE_BY(compare_loads, struct live_gil, DESCENDING(load_percent))

COMPARE_BY(compare_pairs, struct live_pair, DESCENDING(wait_ns))

COMPARE_BY(compare_functions, struct live_function, DESCENDING(self_ns), DESCENDING(total_ns))

static u32 number_of(struct live *l, const struct wait *w)
{
	struct gil_key key = { w->gil, w->pid, 0 };
	u32 *number = recent__get(&l->gil_numbers, &key), *count = recent__get(&l->gil_counts, &w->pid);

	if (!number || !count)
		return 0;
	if (!*number)
		*number = ++*count;
	return *number - 1;
}

/* Sums up waits [from, to), which are those of one GIL, sorted by their start. */
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
	out->waits = saturate__u64((double)out->waits * weight);
	out->wait_ns = saturate__u64((double)out->wait_ns * weight);
	out->load_percent = measured ? 100.0 * (double)covered * weight / (double)measured : 0;
	if (out->load_percent > 100)
		out->load_percent = 100;
}

int live__sum_gils(struct live *l, double weight)
{
	struct live_view *v = &l->view;
	u32 from = 0;

	if (l->n_waits)
		qsort(l->waits, l->n_waits, sizeof(*l->waits), compare_waits);
	for (u32 i = 1; i <= l->n_waits; i++) {
		if (i < l->n_waits && l->waits[i].gil == l->waits[from].gil && l->waits[i].pid == l->waits[from].pid)
			continue;
		if (!array__room(v->gils, v->n_gils))
			return -ENOMEM;
		sum_gil(l, from, i, weight, &v->gils[v->n_gils++]);
		from = i;
	}
	if (v->n_gils)
		qsort(v->gils, v->n_gils, sizeof(*v->gils), compare_loads);
	return 0;
}

int live__sum_pairs(struct live *l, double weight)
{
	struct live_view *v = &l->view;
	struct map pairs;
	u64 all = 0;
	int err = 0;

	map__init(&pairs, sizeof(struct pair_key), sizeof(struct sum));
	for (u32 i = 0; i < l->n_waits && !err; i++) {
		const struct wait *w = &l->waits[i];
		struct pair_key key = pair_of(l, w);
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
		name_function(l, k->holder, p->holder, sizeof(p->holder), "holder unknown");
		name_function(l, k->waiter, p->waiter, sizeof(p->waiter), "?");
		p->waits = saturate__u64((double)sum->waits * weight);
		p->wait_ns = saturate__u64((double)sum->ns * weight);
		p->share_percent = all ? 100.0 * (double)sum->ns / (double)all : 0;
	}
	if (v->n_pairs)
		qsort(v->pairs, v->n_pairs, sizeof(*v->pairs), compare_pairs);
	map__free(&pairs);
	return err;
}

int live__sum_functions(struct live *l)
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

COMPARE_BY(compare_processes, struct live_process, DESCENDING(ns))

/* A thread that ran for less than this part of the interval does not count. */
#define RAN_PART 20

/* A process's activity; the keys of its times begin with the same fields. */
struct activity_key {
	u32 pid;
	u8 activity, rule, lock, unused;
};

/* Activities of processes, and the index of each plus one */
struct process_list {
	struct live_process *list;
	u32 n;
	struct map numbers; /* struct activity_key -> u32 */
};

/* Adds the time of a thread or function to its process. */
static int add_time(struct live *l, struct process_list *p, const struct time_key *key, u64 ns)
{
	struct activity_key of = { key->pid, key->activity, key->rule, key->lock, 0 };
	u32 *number = map__get(&p->numbers, &of);
	struct live_process *process;
	u64 measured = l->view.to - l->view.from - (key->activity == LIVE_CPU ? 0 : l->view.unmeasured_ns);

	if (!number)
		return -ENOMEM;
	if (!*number) {
		if (!array__push(
			    p->list, p->n,
			    (struct live_process){
				    .pid = key->pid, .activity = key->activity, .rule = key->rule, .lock = key->lock }))
			return -ENOMEM;
		*number = p->n;
	}
	process = &p->list[*number - 1];
	if (key->tid && ns >= measured / RAN_PART) {
		process->threads++;
		process->ns += ns;
	} else if (key->ended_by && ns > process->ended_by_ns) {
		process->ended_by_ns = ns;
		name_function(l, key->ended_by, process->ended_by, sizeof(process->ended_by), "");
	} else if (key->code && ns > process->function_ns) {
		process->function_ns = ns;
		name_function(l, key->code, process->function, sizeof(process->function), "");
	}
	return 0;
}

static int sum_times(struct live *l, const struct map *times, struct live_process **list, u32 *n)
{
	struct process_list p = { 0 };
	int err = 0;

	map__init(&p.numbers, sizeof(struct activity_key), sizeof(u32));
	for (u32 i = 0; !err && i < times->n; i++)
		err = add_time(l, &p, map__key(times, i), *(const u64 *)map__value(times, i));
	map__free(&p.numbers);
	if (p.n)
		qsort(p.list, p.n, sizeof(*p.list), compare_processes);
	*list = p.list;
	*n = p.n;
	return err;
}

int live__sum_processes(struct live *l)
{
	struct live_view *v = &l->view;
	int err = sum_times(l, &l->on_cpu, &v->processes, &v->n_processes);

	if (!err)
		err = sum_times(l, &l->off_cpu, &v->waits, &v->n_waits);
	for (u32 i = 0; !err && i < l->throttles.n; i++)
		err = array__push(v->throttles, v->n_throttles,
				  *(const struct throttle *)map__value(&l->throttles, i)) ?
			      0 :
			      -ENOMEM;
	return err;
}
