// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads what threads did in the times of a level: intervals of activity, samples, and who used the CPUs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings/chain_private.h"
#include "findings/classify.h"
#include "model/lock_kind.h"
#include "model/sched_span.h"
#include "model/span_list.h"
#include "output/table.h"
#include "output/text.h"
#include "util/array.h"
#include "util/compare.h"
#include "util/search.h"

COMPARE_BY(by_thread, struct chain_time, ASCENDING(thread.pid), ASCENDING(thread.tid), ASCENDING(from))

static int add_segment(struct chain_reading *r, struct thread_key caused_by, u32 caused_by_stack, u64 from, u64 to)
{
	struct chain_segment p = { caused_by, caused_by_stack, r->interval_code, from, to, (u8)r->interval_kind };

	if (r->n_segments < CHAIN_TIMES_MAX)
		return array__push(r->segments, r->n_segments, p) ? 0 : -ENOMEM;
	r->chain->left_out += to - from;
	return 0;
}

static int on_holder(struct thread_key holder, u32 stack, u64 from, u64 to, void *arg)
{
	return add_segment(arg, holder, stack, from, to);
}

static u32 stack_of(const struct activity_interval *i)
{
	return i->off_stack ? i->off_stack : i->stack;
}

/* Returns the code of the user's innermost function on the stack, else of the native one; 0: not known. */
static u32 code_of(const struct chain_reading *r, u32 stack)
{
	struct stack_parts parts = stack_parts__of(r->in->stacks, stack);
	u32 frame = parts.user ? parts.user : parts.python ? parts.python : lock_kind__code(r->in->stacks, stack);
	const struct stack_frame *f = stacks__frame(r->in->stacks, frame);

	return f ? f->code : 0;
}

static enum finding_kind kind_of(const struct chain_reading *r, const struct activity_interval *i)
{
	const struct profile_cell *cell = profile__find(r->in->profile, i);

	/* a thread in the background that sleeps is idle, but not while others wait for it */
	if (cell && cell->kind == FINDING_IDLE && i->cause == ACTIVITY_SLEEP && r->chain->n > 1)
		return FINDING_SLEEP;
	/* The profile counts the run-queue delay after a wait with that wait. Here it counts as a wait for a CPU. */
	if (cell && cell->kind)
		return cell->is_delay ? FINDING_CPU : cell->kind;
	return i->state == ACTIVITY_RUNNING  ? FINDING_COMPUTE :
	       i->state == ACTIVITY_RUNNABLE ? FINDING_CPU :
	       i->state == ACTIVITY_BLOCKED  ? FINDING_ASLEEP :
					       FINDING_NONE;
}

static int add_to_function(struct chain_reading *r, const struct activity_interval *i)
{
	struct chain_function_key key = { r->interval_kind, r->interval_code };
	struct chain_function *p = map__get(&r->functions, &key);
	u64 ns = i->to - i->from;

	if (!p)
		return -ENOMEM;
	p->ns += ns;
	p->times += i->is_first_part;
	if (ns <= p->longest)
		return 0;
	p->longest = ns;
	p->stack = stack_of(i);
	p->reason = i->reason;
	p->object = i->object;
	p->thread = i->thread;
	p->caused_by = i->caused_by;
	return 0;
}

static int on_interval(const struct activity_interval *i, void *arg)
{
	static const struct thread_key none;
	struct chain_reading *r = arg;
	u64 ns = i->to - i->from;
	int err;

	if (r->in->profile->has_sched && i->state == ACTIVITY_UNKNOWN)
		return 0;
	if (r->function && !subject__has_function(r->function, r->in->stacks, stack_of(i)))
		return 0;
	r->interval = i;
	r->interval_kind = kind_of(r, i);
	r->interval_code = i->state == ACTIVITY_BLOCKED || i->reason < ACTIVITY_CAUSE_BASE ? code_of(r, stack_of(i)) :
											     0;
	r->level->ns += ns;
	r->level->parts[r->interval_kind].ns += ns;
	r->level->parts[r->interval_kind].times += i->is_first_part;
	err = add_to_function(r, i);
	if (err || i->state == ACTIVITY_RUNNING)
		return err;
	if (r->interval_kind == FINDING_LOCK)
		return lock_blame__holders(r->in->locks, i->thread, i->from, i->to, on_holder, r);
	return add_segment(r, i->is_free ? none : i->caused_by, i->caused_by_stack, i->from, i->to);
}

static int read_window(struct chain_reading *r, const struct chain_times *times, struct trace_window w)
{
	struct activity *a = findings__activity(r->findings);
	int err = activity__load(a, w.from, w.to);

	for (u32 i = 0; !err && i < times->n; i++) {
		const struct chain_time *t = &times->list[i];
		u64 from = t->from > w.from ? t->from : w.from, to = t->to < w.to ? t->to : w.to;

		if (from < to)
			err = activity__of(a, t->thread.pid, t->thread.tid, from, to, on_interval, r);
	}
	return err;
}

static void sort_times(struct chain_times *times)
{
	qsort(times->list, times->n, sizeof(*times->list), by_thread);
	for (u32 i = 0; i < times->n; i++) {
		struct chain_time *t = &times->list[i];

		t->latest = t->to;
		if (i && thread_key__is_same(t[-1].thread, t->thread) && t[-1].latest > t->latest)
			t->latest = t[-1].latest;
	}
}

int chain_reading__read(struct chain_reading *r, struct chain_times *times)
{
	struct activity *a = findings__activity(r->findings);
	struct trace_window all;
	u32 n = activity__windows(a, &all);
	u64 step = n ? (all.to - all.from) / n + 1 : 0;
	int err = 0;

	if (!times->n)
		return 0;
	sort_times(times);
	activity__remove_threads(a);
	for (u32 i = 0; !err && i < times->n; i++)
		if (!i || times->list[i].thread.tid != times->list[i - 1].thread.tid ||
		    times->list[i].thread.pid != times->list[i - 1].thread.pid)
			err = activity__add_thread(a, times->list[i].thread.pid, times->list[i].thread.tid);
	for (u64 at = all.from, end; !err && at < all.to; at = end) {
		end = trace_window__step_end(at, step, all.to);
		err = read_window(r, times, (struct trace_window){ at, end });
	}
	return err;
}

/* The samples in a level's times, by function */
struct sampling {
	struct chain_reading *r;
	const struct chain_times *times;
	struct map functions; /* u32 code -> struct sampled */
	u64 samples;
};

struct sampled {
	u64 ns, samples;
	u32 stack;
};

static bool is_before(const struct chain_time *t, struct thread_key thread, u64 time)
{
	if (t->thread.pid != thread.pid)
		return t->thread.pid < thread.pid;
	if (t->thread.tid != thread.tid)
		return t->thread.tid < thread.tid;
	return t->from <= time;
}

/* Returns whether `time` lies in one of the thread's times. */
static bool is_inside(const struct chain_times *times, struct thread_key thread, u64 time)
{
	size_t n = SEARCH(times->n, i, is_before(&times->list[i], thread, time));
	const struct chain_time *t = n ? &times->list[n - 1] : NULL;

	return t && thread_key__is_same(t->thread, thread) && time < t->latest;
}

static int add_sample(struct sampling *s, u32 stack, u64 ns)
{
	struct stack_parts parts = stack_parts__of(s->r->in->stacks, stack);
	u32 frame = parts.user ? parts.user : parts.python ? parts.python : parts.native;
	const struct stack_frame *f = stacks__frame(s->r->in->stacks, frame);
	u32 code = f ? f->code : 0;
	struct sampled *sum = map__get(&s->functions, &code);

	if (!sum)
		return -ENOMEM;
	sum->ns += ns;
	sum->samples++;
	sum->stack = stack;
	s->samples++;
	return 0;
}

static int on_samples(const struct rows *rows, void *arg)
{
	const struct schema_event *e = rows__event(rows);
	FIELDS_OF(e, stack, period);
	struct common_fields f = common_fields__of(e);
	struct sampling *s = arg;
	int err = 0;

	for (u32 i = 0; !err && i < rows__count(rows); i++) {
		struct thread_key thread = { (u32)rows__s64(rows, f.pid, i), (u32)rows__s64(rows, f.tid, i) };
		u32 id = (u32)rows__s64(rows, stack, i);

		if (!is_inside(s->times, thread, rows__u64(rows, f.time, i)))
			continue;
		if (s->r->function && !subject__has_function(s->r->function, s->r->in->stacks, id))
			continue;
		err = add_sample(s, id, rows__u64(rows, period, i));
	}
	return err;
}

/*
 * If the subject is a function: running intervals have no stack, so on_interval() counts none of them for it, and its
 * running time is that of its samples.
 */
static void add_running(struct chain_reading *r, u64 ns)
{
	r->level->parts[FINDING_COMPUTE].ns += ns;
	r->level->ns += ns;
}

int chain_reading__sample(struct chain_reading *r, const struct chain_times *times)
{
	struct chain_function_key key = { FINDING_COMPUTE, 0 };
	struct sampling s = { .r = r, .times = times };
	const struct sampled *best = NULL;
	struct chain_function *p;
	u64 all = 0, running;
	int err;

	map__init(&s.functions, sizeof(u32), sizeof(struct sampled));
	err = query__read_kind(r->in->q, "sample_cpu", on_samples, &s);
	MAP_EACH(const struct sampled *sum, &s.functions) {
		all += sum->ns;
		best = !best || sum->ns > best->ns ? sum : best;
	}
	if (r->function)
		add_running(r, all);
	running = r->level->parts[FINDING_COMPUTE].ns;
	p = err || !best ? NULL : map__get(&r->functions, &key);
	if (p) {
		p->ns = (u64)((double)running * (double)best->ns / (double)(all ? all : 1));
		p->times = best->samples;
		p->stack = best->stack;
	}
	map__free(&s.functions);
	return err;
}

#define CPU_NAME_LEN  32
#define CPU_USERS_MAX 3 /* names that are written */

/* Sums the time of each process on CPUs while the level's threads were runnable. */
struct cpu_users {
	const struct finding_input *in;
	struct span_list windows;
	u32 machine;
	struct map ran; /* u32 pid -> u64 ns */
};

static int add_windows(struct cpu_users *u, const struct chain_reading *r)
{
	int err = 0;

	for (u32 i = 0; !err && i < r->n_segments; i++)
		if (r->segments[i].kind == r->level->kind)
			err = span_list__add(&u->windows, &(struct listed_span){ .from = r->segments[i].from,
										 .to = r->segments[i].to });
	span_list__sort(&u->windows);
	return err;
}

static int on_span(const struct sched_span *s, void *arg)
{
	struct cpu_users *u = arg;
	const struct span_list *l = &u->windows;
	u64 *ns, sum = 0;

	if (!s->on_cpu || names__machine(u->in->q->names, s->pid) != u->machine)
		return 0;
	for (u32 i = span_list__find(l, s->start); i < l->n && l->spans[i].from < s->end; i++) {
		u64 from = l->spans[i].from > s->start ? l->spans[i].from : s->start;
		u64 to = l->spans[i].to < s->end ? l->spans[i].to : s->end;

		sum += to > from ? to - from : 0;
	}
	ns = sum ? map__get(&u->ran, &s->pid) : NULL;
	if (ns)
		*ns += sum;
	return sum && !ns ? -ENOMEM : 0;
}

/* A user's processes of one name: names are texts that processes choose */
struct cpu_name_key {
	char name[CPU_NAME_LEN];
	u32 user; /* names__user() */
};

struct cpu_name {
	u64 ns, main_ns; /* ns; of which those of `pid` */
	u32 pid;
};

static int add_names(const struct cpu_users *u, struct map *names)
{
	for (u32 i = 0; i < u->ran.n; i++) {
		u64 ns = *(const u64 *)map__value(&u->ran, i);
		u32 pid = *(const u32 *)map__key(&u->ran, i);
		const char *title = NAMES_TITLE(u->in->q->names, pid, 0);
		struct cpu_name_key key = { .user = names__user(u->in->q->names, pid) };
		struct cpu_name *n;

		snprintf(key.name, sizeof(key.name), "%s", title ?: "unnamed processes");
		n = map__get(names, &key);
		if (!n)
			return -ENOMEM;
		n->ns += ns;
		n->pid = ns > n->main_ns ? pid : n->pid;
		n->main_ns = ns > n->main_ns ? ns : n->main_ns;
	}
	return 0;
}

/*
 * Writes the names with most time into l->object: "qemu 62%, make 20%". Sets l->caused_by to the process that ran most
 * among those with the first name.
 */
static void write_users(struct chain_level *l, struct map *names, u64 time)
{
	struct text_buffer s = { .buf = l->object, .size = sizeof(l->object) };

	*l->object = '\0';
	for (u32 n_written = 0; n_written < CPU_USERS_MAX; n_written++) {
		struct cpu_name *best = NULL, *n;
		const char *name = NULL;

		for (u32 i = 0; i < names->n; i++) {
			n = map__value(names, i);
			if (best && n->ns <= best->ns)
				continue;
			best = n;
			name = ((const struct cpu_name_key *)map__key(names, i))->name;
		}
		if (!best || 100 * best->ns < time)
			break;
		if (!n_written)
			l->caused_by = (struct thread_key){ best->pid, 0 };
		l->cpus_percent += table__percent(best->ns, time);
		text__add(&s, "%s%s %.0f%%", n_written ? ", " : "", name, table__percent(best->ns, time));
		best->ns = 0;
	}
}

int chain_reading__find_cpu_users(struct chain_reading *r)
{
	struct cpu_users u = { .in = r->in, .machine = names__machine(r->in->q->names, r->level->thread.pid) };
	struct query all = *r->in->q;
	const struct trace_facts *facts = all.facts;
	struct map names;
	u64 time = 0;
	int err;

	map__init(&u.ran, sizeof(u32), sizeof(u64));
	map__init(&names, sizeof(struct cpu_name_key), sizeof(struct cpu_name));
	all.pids.n = all.tids.n = 0;
	err = add_windows(&u, r);
	if (!err && u.windows.n)
		err = sched_spans__read(&all, SPAN_WHY, on_span, &u);
	if (!err)
		err = add_names(&u, &names);
	for (u32 i = 0; i < u.windows.n; i++)
		time += u.windows.spans[i].to - u.windows.spans[i].from;
	if (facts && facts->head && facts->head->cpus)
		write_users(r->level, &names, time * facts->head->cpus);
	MAPS_FREE(&names, &u.ran);
	span_list__free(&u.windows);
	return err;
}

void chain_reading__free(struct chain_reading *r)
{
	map__free(&r->functions);
	free(r->segments);
}
