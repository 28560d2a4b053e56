// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/chain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings/chain_private.h"
#include "findings/slow_rank.h"
#include "findings/stopped.h"
#include "model/lock_kind.h"
#include "util/array.h"

const char *chain_end__key(enum chain_end end)
{
	static const char *const keys[] = {
		[CHAIN_GOES_ON] = "goes-on", [CHAIN_CAUSE] = "cause",
		[CHAIN_IDLE] = "idle",	     [CHAIN_CPU] = "cpu",
		[CHAIN_UNKNOWN] = "unknown", [CHAIN_OUTSIDE] = "outside",
		[CHAIN_CYCLE] = "cycle",     [CHAIN_DEEP] = "deep",
		[CHAIN_NO_TIME] = "no-time", [CHAIN_UNRECORDED] = "unrecorded",
	};

	return keys[end];
}

/* Does another thread end such waits? What it did meanwhile explains them. */
static bool is_followed(enum finding_kind kind)
{
	return IS_ONE_OF(kind, FINDING_GIL, FINDING_LOCK, FINDING_FILE_LOCK, FINDING_PEER, FINDING_CHILD,
			 FINDING_RESULT, FINDING_BACKWARD, FINDING_QUEUE, FINDING_LOADER, FINDING_SEMAPHORE,
			 FINDING_BARRIER, FINDING_RANKS, FINDING_CONDITION);
}

static bool is_for_cpu(enum finding_kind kind)
{
	return kind == FINDING_CPU || kind == FINDING_QUOTA || kind == FINDING_AFFINITY;
}

/*
 * Returns the kind with the largest part. At the first level parts are weighted, so that idle time hardly counts. A
 * wait for a result counts as much as one for a CPU: the next level has its cause.
 */
static enum finding_kind largest(const struct chain_level *l, bool is_first)
{
	enum finding_kind best = FINDING_NONE;
	double most = 0;

	for (enum finding_kind k = FINDING_NONE + 1; k < FINDING_KINDS; k++) {
		bool is_result = k == FINDING_RESULT || k == FINDING_BACKWARD;
		double factor = finding_kind__weight(is_result ? FINDING_CPU : k);
		double weight = (double)l->parts[k].ns * (is_first ? factor : 1);

		if (weight <= most)
			continue;
		most = weight;
		best = k;
	}
	return best;
}

/* Finds the function in which most time of the level's kind was spent. Returns the number of its code; 0: not known. */
static u32 find_function(struct chain_reading *r)
{
	struct chain_level *l = r->level;
	const struct chain_function *best = NULL;
	enum activity_cause cause;
	u32 code = 0;

	MAP_EACH_ENTRY(const struct chain_function *p, const struct chain_function_key *key, &r->functions) {
		if (key->kind != (u32)l->kind || (best && p->ns <= best->ns))
			continue;
		best = p;
		code = key->code;
	}
	if (!best)
		return 0;
	cause = activity__cause(r->in->activity, best->reason);
	l->code_ns = best->ns;
	l->code_times = best->times;
	if (best->stack)
		finding_code__fill(&l->code, r->in->stacks, best->stack);
	/* the others are states, such as a wait for the GIL */
	if (best->reason && best->reason < ACTIVITY_CAUSE_BASE &&
	    !IS_ONE_OF(cause, ACTIVITY_GIL, ACTIVITY_LOCK, ACTIVITY_CONDITION, ACTIVITY_GC, ACTIVITY_DISK,
		       ACTIVITY_FAULT, ACTIVITY_RECLAIM, ACTIVITY_CONNECT))
		snprintf(l->call, sizeof(l->call), "%s", activity__name(r->in->activity, best->reason));
	if (stopped__is_kind(l->kind))
		stopped__by(r->in->q->names, best->thread.pid, l->kind, best->object, best->caused_by.pid, l->object,
			    sizeof(l->object));
	else if (best->object && l->kind != FINDING_LOCK && l->kind != FINDING_GIL) {
		const struct osrt_file *f = osrt_files__find(r->in->files, best->thread.pid, (u32)best->object);

		r->peer = f ? osrt_files__other_end(r->in->files, best->thread.pid, f) : 0;
		if (f)
			snprintf(l->object, sizeof(l->object), "%s", osrt_files__name(r->in->files, f->number));
	}
	return code;
}

/* The chain goes on only if the cause that was found accounts for at least 1 / CAUSE_PART of the function's time. */
#define CAUSE_PART 5

/* The segments of waits are summed by the process that caused them and by the code that it ran. */
struct cause_key {
	u32 pid, code;
};

struct cause_sum {
	u64 ns, longest;
	struct thread_key thread;
	u32 stack;
	bool is_several;
};

static struct cause_key cause_key_of(const struct chain_reading *r, const struct chain_segment *p)
{
	const struct stack_frame *f = stacks__frame(r->in->stacks, lock_kind__code(r->in->stacks, p->caused_by_stack));

	return (struct cause_key){ p->caused_by.pid, f ? f->code : 0 };
}

static bool is_in_code(const struct chain_reading *r, const struct chain_segment *p, u32 code)
{
	return p->kind == r->level->kind && p->code == code && p->caused_by.tid;
}

static int sum_up(const struct chain_reading *r, u32 code, struct map *sums)
{
	for (u32 i = 0; i < r->n_segments; i++) {
		const struct chain_segment *p = &r->segments[i];
		struct cause_key key;
		struct cause_sum *s;

		if (!is_in_code(r, p, code))
			continue;
		key = cause_key_of(r, p);
		s = map__get(sums, &key);
		if (!s)
			return -ENOMEM;
		s->is_several = s->is_several || (s->ns && s->thread.tid != p->caused_by.tid);
		s->ns += p->to - p->from;
		s->thread = p->caused_by;
		if (p->to - p->from < s->longest)
			continue;
		s->longest = p->to - p->from;
		s->stack = p->caused_by_stack;
	}
	return 0;
}

/* Collects the times for which the threads of caused_by are responsible: the next level explains them. */
static int next_times(const struct chain_reading *r, u32 code, struct cause_key caused_by, struct chain_times *next)
{
	for (u32 i = 0; i < r->n_segments; i++) {
		const struct chain_segment *p = &r->segments[i];
		struct cause_key key;

		if (!is_in_code(r, p, code))
			continue;
		key = cause_key_of(r, p);
		if (key.pid != caused_by.pid || key.code != caused_by.code)
			continue;
		if (!array__push(next->list, next->n, (struct chain_time){ p->caused_by, p->from, p->to, 0 }))
			return -ENOMEM;
	}
	return 0;
}

/* Finds the threads that made others wait in this code. Adds the times of these waits to next. */
static int find_cause(struct chain_reading *r, u32 code, struct chain_times *next)
{
	struct chain_level *l = r->level;
	const struct cause_sum *best = NULL;
	struct cause_key key = { 0, 0 };
	struct map sums;
	int err;

	map__init(&sums, sizeof(struct cause_key), sizeof(struct cause_sum));
	err = sum_up(r, code, &sums);
	for (u32 i = 0; !err && i < sums.n; i++) {
		const struct cause_sum *s = map__value(&sums, i);

		if (best && s->ns <= best->ns)
			continue;
		best = s;
		key = *(const struct cause_key *)map__key(&sums, i);
	}
	if (best) {
		l->caused_by = best->is_several ? (struct thread_key){ best->thread.pid, 0 } : best->thread;
		l->caused_by_ns = best->ns;
		if (best->stack)
			finding_code__fill(&l->caused_by_code, r->in->stacks, best->stack);
		err = next_times(r, code, key, next);
	}
	map__free(&sums);
	return err;
}

/* Returns the thread of a process with the most time that is not idle; its main thread if the trace has none. */
static struct thread_key busiest(const struct profile *p, u32 pid)
{
	struct thread_key best = { pid, pid };
	bool found = false;
	u64 most = 0;

	MAP_EACH_ENTRY(const struct profile_thread *t, const struct thread_key *key, &p->threads) {
		if (key->pid != pid || (found && t->wall - t->idle_ns <= most))
			continue;
		found = true;
		best = *key;
		most = t->wall - t->idle_ns;
	}
	return best;
}

/* Makes this thread the one that the waits in this code are for. */
static int replace_cause(struct chain_reading *r, u32 code, struct thread_key thread, struct chain_times *next)
{
	struct chain_level *l = r->level;

	l->caused_by = thread;
	l->caused_by_ns = l->code_ns;
	l->caused_by_code = (struct finding_code){ 0 };
	next->n = 0;
	for (u32 i = 0; i < r->n_segments; i++) {
		const struct chain_segment *p = &r->segments[i];

		if (p->kind != (u8)l->kind || p->code != code)
			continue;
		if (!array__push(next->list, next->n, (struct chain_time){ l->caused_by, p->from, p->to, 0 }))
			return -ENOMEM;
	}
	return 0;
}

/*
 * For a wait for a connection within this machine or for a file's lock: if the cause that find_cause() found accounts
 * for less than 1 / CAUSE_PART of the time, the process at the other end, or that holds the lock, replaces it.
 * find_cause() takes wakers for causes, and the kernel's network code ends such a wait in the context of any thread.
 */
static int find_peer(struct chain_reading *r, u32 code, struct chain_times *next)
{
	const struct chain_level *l = r->level;

	if ((l->kind != FINDING_PEER && l->kind != FINDING_FILE_LOCK) || !r->peer ||
	    CAUSE_PART * l->caused_by_ns >= l->code_ns)
		return 0;
	return replace_cause(r, code, busiest(r->in->profile, r->peer), next);
}

/* For a wait in a collective operation: the slow rank of the job replaces the thread that moves the data. */
static int find_rank(struct chain_reading *r, u32 code, struct chain_times *next)
{
	struct slow_ranks ranks;
	const struct slow_rank *slow;
	int err;

	if (!IS_ONE_OF(r->level->kind, FINDING_RANKS, FINDING_BACKWARD))
		return 0;
	err = slow_ranks__find(&ranks, r->in);
	slow = err ? NULL : slow_ranks__of_job(&ranks, r->level->thread.pid);
	if (slow && slow->rank->pid != r->level->thread.pid)
		err = replace_cause(r, code, slow->rank->thread, next);
	slow_ranks__free(&ranks);
	return err;
}

/*
 * Returns whether the thread that this level waits for is the one of an earlier level. Several threads of one process
 * (tid 0) may be different ones at each level. They count as a cycle only if both levels wait for the same kind of
 * thing, and if the threads of this level belong to another process than those that they wait for. Within one process
 * each thread may wait for the next one, and the last one has the cause.
 */
static bool is_cycle(const struct chain *c, const struct chain_level *l)
{
	for (u32 i = 0; i < c->n; i++) {
		const struct chain_level *o = &c->levels[i];

		if (o->thread.tid != l->caused_by.tid || o->thread.pid != l->caused_by.pid)
			continue;
		if (l->caused_by.tid || (o->kind == l->kind && l->thread.pid != l->caused_by.pid))
			return true;
	}
	return false;
}

/*
 * A thread that others wait for may itself wait for something to do: a thread that sends what another one of its
 * process makes. What that one did meanwhile explains the wait, unless it is a thread of an earlier level.
 */
static bool is_fed(const struct chain *c, const struct chain_level *l)
{
	return c->n > 1 && c->n < CHAIN_LEVELS_MAX && l->caused_by.pid == l->thread.pid &&
	       CAUSE_PART * l->caused_by_ns >= l->code_ns && !is_cycle(c, l);
}

static enum chain_end end_of(const struct chain *c, const struct chain_level *l)
{
	bool is_network_peer = l->kind == FINDING_PEER &&
			       (!strncmp(l->object, "tcp ", 4) || !strncmp(l->object, "udp ", 4));

	if (l->kind == FINDING_NONE)
		return CHAIN_NO_TIME;
	if (l->kind == FINDING_IDLE)
		return is_fed(c, l) ? CHAIN_GOES_ON : CHAIN_IDLE;
	if (l->kind == FINDING_ASLEEP)
		return CHAIN_IDLE;
	if (is_for_cpu(l->kind))
		return CHAIN_CPU;
	if (!is_followed(l->kind))
		return CHAIN_CAUSE;
	if (!l->caused_by.pid || CAUSE_PART * l->caused_by_ns < l->code_ns)
		return is_network_peer ? CHAIN_OUTSIDE : CHAIN_UNKNOWN;
	if (is_cycle(c, l))
		return CHAIN_CYCLE;
	return c->n == CHAIN_LEVELS_MAX ? CHAIN_DEEP : CHAIN_GOES_ON;
}

/* Sets the thread of all times: tid 0 if there are several threads, pid 0 if there are several processes. */
static void name_threads(struct chain_level *l, const struct chain_times *times)
{
	struct thread_key last = { 0, 0 };

	if (times->n)
		l->thread = times->list[0].thread;
	for (u32 i = 0; i < times->n; i++) {
		struct thread_key t = times->list[i].thread;

		l->threads += t.tid != last.tid || t.pid != last.pid;
		l->thread.tid = l->thread.tid == t.tid ? t.tid : 0;
		l->thread.pid = l->thread.pid == t.pid ? t.pid : 0;
		last = t;
	}
}

static int read_level(struct chain *c, const struct findings *f, struct chain_times *times, struct chain_times *next)
{
	bool is_first = !c->n;
	struct chain_level *l = &c->levels[c->n++];
	struct chain_reading r = { .chain = c, .findings = f, .in = findings__input(f), .level = l };
	int err;
	u32 code;

	map__init(&r.functions, sizeof(struct chain_function_key), sizeof(struct chain_function));
	if (is_first && c->subject.kind == SUBJECT_FUNCTION)
		r.function = &c->subject;
	err = chain_reading__read(&r, times);
	name_threads(l, times);
	/* other levels have no use for samples */
	if (!err && (r.function || largest(l, is_first) == FINDING_COMPUTE))
		err = chain_reading__sample(&r, times);
	l->kind = largest(l, is_first);
	code = find_function(&r);
	if (!err && is_for_cpu(l->kind))
		err = chain_reading__find_cpu_users(&r);
	else if (!err && (is_followed(l->kind) || (l->kind == FINDING_IDLE && !is_first)))
		err = find_cause(&r, code, next);
	if (!err)
		err = find_peer(&r, code, next);
	if (!err)
		err = find_rank(&r, code, next);
	l->is_forked = l->kind == FINDING_LOCK && l->caused_by.pid && l->caused_by.pid != l->thread.pid &&
		       lock_blame__is_private(r.in->locks, l->thread);
	l->end = end_of(c, l);
	if (l->end == CHAIN_IDLE)
		l->caused_by = (struct thread_key){ 0, 0 };
	chain_reading__free(&r);
	return err;
}

static int first_times(const struct chain *c, const struct findings *f, struct chain_times *times)
{
	struct trace_window all;

	activity__windows(findings__activity(f), &all);
	for (u32 i = 0; i < c->subject.n; i++)
		if (!array__push(times->list, times->n,
				 (struct chain_time){ c->subject.threads[i], all.from, all.to, 0 }))
			return -ENOMEM;
	return 0;
}

int chain__read(struct chain *c, const struct findings *f, const char *text)
{
	struct chain_times times = { 0 }, next;
	int err;

	memset(c, 0, sizeof(*c));
	err = subject__find(&c->subject, f, text);
	if (!err && c->subject.kind != SUBJECT_NONE)
		err = first_times(c, f, &times);
	while (!err && times.n && c->n < CHAIN_LEVELS_MAX) {
		next = (struct chain_times){ 0 };
		err = read_level(c, f, &times, &next);
		free(times.list);
		times = next;
		if (c->levels[c->n - 1].end != CHAIN_GOES_ON)
			break;
	}
	free(times.list);
	/* a thread without scheduler events explains nothing */
	if (c->n > 1 && !c->levels[c->n - 1].ns) {
		c->n--;
		c->levels[c->n - 1].end = CHAIN_UNRECORDED;
	}
	return err;
}

void chain__free(struct chain *c)
{
	subject__free(&c->subject);
}
