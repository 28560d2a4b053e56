// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings/caller.h"
#include "findings/classify.h"
#include "findings/loop.h"
#include "output/table.h"
#include "util/compare.h"

/* A cell with its sort keys */
struct member {
	u32 pid, code, tid, cell;
};

static u32 code_of(const struct finding_input *in, u32 frame)
{
	const struct stack_frame *f = stacks__frame(in->stacks, frame);

	return f ? f->code : 0;
}

COMPARE_BY(by_group, struct member, ASCENDING(pid), ASCENDING(code), ASCENDING(tid))

COMPARE_BY(by_ns, struct group, DESCENDING(ns))

_Static_assert(FINDING_KINDS <= 64, "a bit for each kind");

static struct member *members(const struct finding_input *in, u64 kinds, enum grouping by, u32 *n)
{
	const struct profile *p = in->profile;
	struct member *list = calloc((size_t)p->cells.n + 1, sizeof(*list));

	*n = 0;
	for (u32 i = 0; list && i < p->cells.n; i++) {
		const struct profile_key *key = profile__key(p, i);
		const struct profile_cell *cell = profile__cell(p, i);
		u32 code;

		if (!(kinds & FINDING_BIT(cell->kind)))
			continue;
		code = by == GROUPS_HOLDER ? code_of(in, stacks__top_user(in->stacks, key->caused_by_stack)) :
		       by == GROUPS_CODE   ? code_of(in, cell->code) :
		       by == GROUPS_KIND   ? cell->kind :
					     0;
		list[(*n)++] = (struct member){ key->thread.pid, code, key->thread.tid, i };
	}
	if (list)
		qsort(list, *n, sizeof(*list), by_group);
	return list;
}

/*
 * A thread that lost less than a twentieth of its time, or a share of it that is less than a quarter of the group's,
 * would make the share of the others look small.
 */
#define THREAD_SHARE 20
#define GROUP_SHARE  4

/* The end of the members from `from` on that are one thread's. */
static u32 thread_end(const struct member *list, u32 from, u32 n)
{
	const struct member *m = &list[from];

	while (from < n && list[from].pid == m->pid && list[from].code == m->code && list[from].tid == m->tid)
		from++;
	return from;
}

/* The time in the members [from, to) of a thread; 0: it is less than a twentieth of the thread's. */
static u64 thread_ns(const struct finding_input *in, const struct member *list, u32 from, u32 to, u64 *wall)
{
	struct thread_key thread = { list[from].pid, list[from].tid };
	const struct profile_thread *t = map__find(&in->profile->threads, &thread);
	u64 ns = 0;

	for (u32 i = from; i < to; i++)
		ns += profile__cell(in->profile, list[i].cell)->ns;
	*wall = t ? t->wall : 0;
	return t && ns >= t->wall / THREAD_SHARE ? ns : 0;
}

/* The share of their time that the threads of the group that begins at `from` lost; *end: the end of its members. */
static double group_share(const struct finding_input *in, const struct member *list, u32 from, u32 n, u32 *end)
{
	u64 sum = 0, walls = 0, ns, wall;

	for (*end = from; *end < n && list[*end].pid == list[from].pid && list[*end].code == list[from].code;) {
		u32 to = thread_end(list, *end, n);

		ns = thread_ns(in, list, *end, to, &wall);
		sum += ns;
		walls += ns ? wall : 0;
		*end = to;
	}
	return walls ? (double)sum / walls : 0;
}

/* Adds the members [from, to), which are one thread's, if they took enough of its time. */
static void add_thread(struct groups *all, struct group *g, const struct finding_input *in, const struct member *list,
		       u32 from, u32 to, double least)
{
	u64 wall, ns = thread_ns(in, list, from, to, &wall);

	if (!ns || ns < least * wall)
		return;
	g->ns += ns;
	g->wall_ns += wall;
	g->threads++;
	for (u32 i = from; i < to; i++) {
		const struct profile_cell *cell = profile__cell(in->profile, list[i].cell);

		if (cell->is_delay)
			g->delay_ns += cell->ns;
		else
			g->times += cell->times;
		all->cells[all->n_cells++] = list[i].cell;
		g->n++;
	}
}

int groups__make(struct groups *g, const struct finding_input *in, u64 kinds, enum grouping by)
{
	struct member *list;
	u32 n, end;

	memset(g, 0, sizeof(*g));
	if (!(kinds & in->profile->kinds))
		return 0;
	list = members(in, kinds, by, &n);
	g->cells = list ? calloc((size_t)n + 1, sizeof(*g->cells)) : NULL;
	g->list = g->cells ? calloc((size_t)n + 1, sizeof(*g->list)) : NULL;
	for (u32 i = 0; g->list && i < n;) {
		struct group *group = &g->list[g->n++];
		double least = group_share(in, list, i, n, &end) / GROUP_SHARE;

		*group = (struct group){ list[i].pid, list[i].code, .cells = &g->cells[g->n_cells] };
		for (u32 to; i < end; i = to) {
			to = thread_end(list, i, end);
			add_thread(g, group, in, list, i, to, least);
		}
	}
	free(list);
	if (!g->list)
		return -ENOMEM;
	qsort(g->list, g->n, sizeof(*g->list), by_ns);
	return 0;
}

void groups__free(struct groups *g)
{
	free(g->list);
	free(g->cells);
}

static u64 field_of(const struct profile_key *key, enum group_field field)
{
	switch (field) {
	case GROUP_STACK:
		return key->stack;
	case GROUP_REASON:
		return key->reason;
	case GROUP_OBJECT:
		return key->object;
	case GROUP_CAUSED_BY:
		return (u64)key->caused_by.pid << 32 | key->caused_by.tid;
	case GROUP_CAUSED_BY_STACK:
		return key->caused_by_stack;
	}
	return 0;
}

struct group_most group__most(const struct finding_input *in, const struct group *g, enum group_field field)
{
	struct group_most most = { 0 }, *sum;
	struct map sums;

	map__init(&sums, sizeof(u64), sizeof(struct group_most));
	for (u32 i = 0; i < g->n; i++) {
		u64 value = field_of(profile__key(in->profile, g->cells[i]), field);
		const struct profile_cell *cell = profile__cell(in->profile, g->cells[i]);

		sum = value ? map__get(&sums, &value) : NULL;
		if (!sum)
			continue;
		sum->value = value;
		sum->ns += cell->ns;
		sum->times += cell->is_delay ? 0 : cell->times;
		if (sum->ns >= most.ns)
			most = *sum;
	}
	map__free(&sums);
	return most;
}

/* A group below one of these shares, of its threads' time or of the time as a whole, explains nothing. */
#define SHARE_MIN 20 /* a twentieth */
#define TIME_MIN  50 /* a fiftieth */

/* Weight of waits that last for a large part of the recording: they are for something to do. */
#define BACKGROUND	0.02
#define BACKGROUND_PART 4
/* A thread that was stopped for all of the time but this part of it costs nothing that its users expected. */
#define STOPPED_PART 20

static bool is_background(const struct finding_input *in, const struct group *g, enum finding_kind kind)
{
	switch (kind) {
	case FINDING_PEER:
	case FINDING_SLEEP:
	case FINDING_CHILD:
	case FINDING_RESULT:
	case FINDING_BACKWARD:
	case FINDING_CONDITION:
	case FINDING_CALL:
		return g->ns / (g->times ? g->times : 1) > query__measured(in->q) / BACKGROUND_PART;
	case FINDING_STOPPED:
	case FINDING_TRACED:
	case FINDING_FROZEN:
		return STOPPED_PART * g->ns >= (STOPPED_PART - 1) * g->wall_ns;
	default:
		return false;
	}
}

/* A delay after a wait would be shorter on a machine that does less: this part of it does not count. */
#define DELAY_PART 3

/* 300 threads that wait for something to do cost no more than one. */
static void weigh(const struct finding_input *in, const struct group *g, struct finding *f)
{
	bool is_long = is_background(in, g, f->kind);
	u64 duration = query__measured(in->q), ns = g->ns - g->delay_ns / DELAY_PART;

	f->is_background = is_long || f->kind == FINDING_ASLEEP || f->kind == FINDING_IDLE;
	if (f->is_background && ns > duration)
		ns = duration;
	f->weight = (double)ns * finding_kind__weight(f->kind) * (is_long ? BACKGROUND : 1);
}

void group__set_waits_kind(const struct finding_input *in, const struct group *g, enum finding_kind kind)
{
	for (u32 i = 0; i < g->n; i++) {
		struct profile_cell *cell = profile__cell(in->profile, g->cells[i]);

		if (cell->kind != FINDING_COMPUTE)
			cell->decided = kind;
	}
}

void group__set_kind(const struct finding_input *in, const struct group *g, struct finding *f, enum finding_kind kind)
{
	f->kind = kind;
	f->words = NULL;
	group__set_waits_kind(in, g, kind);
	weigh(in, g, f);
}

void group__set_idle(const struct finding_input *in, const struct group *g, struct finding *f)
{
	f->counterpart = (struct finding_counterpart){ 0 };
	*f->code.caller = '\0';
	group__set_kind(in, g, f, FINDING_IDLE);
}

void group__add_ender(const struct finding_input *in, const struct group *g, struct finding *f)
{
	struct group_most by = group__most(in, g, GROUP_CAUSED_BY);
	u32 pid = (u32)(by.value >> 32);

	f->counterpart = (struct finding_counterpart){ 0 };
	if (!pid || pid == f->pid || 2 * by.ns < f->lost_ns)
		return;
	f->confidence = FINDING_ATTRIBUTED;
	f->counterpart.pid = pid;
	f->counterpart.tid = (u32)by.value;
	f->counterpart.percent = table__percent(by.ns, f->lost_ns);
}

#define KNOWN_WEIGHT 0.9

void finding__waits_for_known(struct finding *f)
{
	double weight = KNOWN_WEIGHT * (double)f->lost_ns;

	if (!f->is_background && weight > f->weight)
		f->weight = weight;
}

void finding__add_detail(struct finding *f, const char *text)
{
	const char *separator = f->detail[0] ? ";" CLAUSE : "";
	size_t len = strlen(f->detail);

	/* a part of a clause would be wrong or misleading */
	if (len + strlen(separator) + strlen(text) < sizeof(f->detail))
		stpcpy(stpcpy(f->detail + len, separator), text);
}

/* Returns the words of a rule on most of the waits that have a stack. */
static const char *words_of(const struct finding_input *in, const struct group *g, enum finding_kind kind)
{
	const char *most = NULL;
	u64 most_ns = 0, all = 0;
	struct map sums; /* const char * -> u64 */

	map__init(&sums, sizeof(const char *), sizeof(u64));
	for (u32 i = 0; i < g->n; i++) {
		const struct profile_cell *cell = profile__cell(in->profile, g->cells[i]);
		u32 stack = profile__key(in->profile, g->cells[i])->stack;
		struct stack_parts parts = stack_parts__of(in->stacks, stack);
		const char *words = stack ? stack_parts__words(&parts, kind) : NULL;
		u64 *ns = words ? map__get(&sums, &words) : NULL;

		all += stack ? cell->ns : 0;
		if (!ns)
			continue;
		*ns += cell->ns;
		most = *ns > most_ns ? words : most;
		most_ns = *ns > most_ns ? *ns : most_ns;
	}
	map__free(&sums);
	return 2 * most_ns > all ? most : NULL;
}

struct finding *group__add_finding(const struct finding_input *in, const struct group *g, enum finding_kind kind,
				   struct findings *out)
{
	struct group_most reason = group__most(in, g, GROUP_REASON), stack = group__most(in, g, GROUP_STACK);
	struct finding *f;

	if (g->ns < g->wall_ns / SHARE_MIN || g->ns < query__measured(in->q) / TIME_MIN)
		return NULL;
	f = findings__add(out, kind);
	if (!f)
		return NULL;
	f->is_measured_part = true;
	f->pid = g->pid;
	f->tid = g->threads == 1 && g->n ? profile__key(in->profile, g->cells[0])->thread.tid : 0;
	f->processes = 1;
	f->threads = g->threads;
	f->lost_ns = g->ns;
	f->wall_ns = g->wall_ns;
	f->times = g->times;
	f->delay_ns = g->delay_ns;
	weigh(in, g, f);
	if (reason.value && reason.value < ACTIVITY_CAUSE_BASE) {
		snprintf(f->call, sizeof(f->call), "%s", activity__name(in->activity, (u32)reason.value));
		f->calls = activity__meaning(in->activity, (u32)reason.value);
		f->call_ns = reason.ns;
		f->call_times = reason.times;
	}
	f->words = words_of(in, g, kind);
	finding_code__fill(&f->code, in->stacks, (u32)stack.value);
	loop__add_waits(in, g, (u32)stack.value, f);
	return f;
}

static void add_caller(const struct finding_input *in, const struct group *g, struct finding *f)
{
	struct callers callers;

	callers__init(&callers, in->stacks, (u32)group__most(in, g, GROUP_STACK).value);
	for (u32 i = 0; i < g->n; i++)
		callers__add(&callers, profile__key(in->profile, g->cells[i])->stack,
			     profile__cell(in->profile, g->cells[i])->ns);
	callers__finish(&callers, &f->code);
}

int groups__each_finding(const struct finding_input *in, enum finding_kind kind, struct findings *out,
			 int (*fn)(const struct finding_input *in, const struct group *g, struct finding *f, void *arg),
			 void *arg)
{
	struct map pids; /* processes that have a finding */
	int err = 0;

	map__init(&pids, sizeof(u32), sizeof(u8));
	for (enum grouping by = GROUPS_CODE; !err && by <= GROUPS_PROCESS; by += GROUPS_PROCESS - GROUPS_CODE) {
		struct groups groups;

		err = groups__make(&groups, in, FINDING_BIT(kind), by);
		for (u32 i = 0; !err && i < groups.n; i++) {
			struct group *g = &groups.list[i];
			struct finding *f = NULL;

			if (by == GROUPS_CODE || !map__find(&pids, &g->pid))
				f = group__add_finding(in, g, kind, out);
			if (f && by == GROUPS_CODE && !map__get(&pids, &g->pid))
				err = -ENOMEM;
			if (f && kind != FINDING_IDLE)
				add_caller(in, g, f);
			if (f && fn && !err)
				err = fn(in, g, f, arg);
		}
		groups__free(&groups);
	}
	map__free(&pids);
	return err;
}
