// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/waited_for.h"

#include <stdio.h>
#include <string.h>

#include "findings/caller.h"
#include "findings/classify.h"
#include "findings/compute.h"
#include "findings/gpu_calls.h"
#include "findings/import.h"
#include "output/text.h"
#include "util/array.h"

#define HOPS_MAX 4

/* What one thread did, or all threads of a process, and which others ended most of its waits */
struct link {
	struct thread_key thread; /* tid 0: all threads, as a server may have one for each request */
	u64 wall, active; /* ns; active: running or runnable */
	u64 idle_ns; /* ns in waits for something to do; 0 once add_wakers() counts these as waits for other threads */
	u64 ended_ns; /* of its waits: ended by `ended_by` */
	struct thread_key ended_by; /* tid 0: by several threads of a process */
	enum finding_kind kind; /* of its longest wait that is not for another thread */
	u64 kind_ns;
	const struct profile_key *wait; /* that wait; NULL: there is none */
	bool is_waited_for; /* by a thread that is known */
};

/* Does this kind of wait explain something by itself? Of others, what the thread that ended it did explains more. */
static bool is_explanation(enum finding_kind kind)
{
	return IS_ONE_OF(kind, FINDING_DISK, FINDING_SLEEP, FINDING_CONDITION, FINDING_LOCK, FINDING_GIL,
			 FINDING_FILE_LOCK, FINDING_CALL, FINDING_PEER, FINDING_CHILD, FINDING_MEMORY, FINDING_BLOCKED,
			 FINDING_LIBRARY, FINDING_GPU_WAIT, FINDING_NCCL);
}

/* Is it the thread, or one of the process's threads? */
static bool is_of(struct thread_key thread, struct thread_key link)
{
	return thread.pid == link.pid && (!link.tid || thread.tid == link.tid);
}

/* Which threads ended waits; those with tid 0 are the sums of other processes */
struct enders {
	struct map sums; /* struct thread_key -> u64 ns */
	struct thread_key thread, process; /* those with the most time */
	u64 thread_ns, process_ns;
};

static void enders__init(struct enders *e)
{
	*e = (struct enders){ 0 };
	map__init(&e->sums, sizeof(struct thread_key), sizeof(u64));
}

static void add_to_most(struct enders *e, struct thread_key key, u64 ns, struct thread_key *most, u64 *most_ns)
{
	u64 *sum = map__get(&e->sums, &key);

	if (!sum)
		return;
	*sum += ns;
	if (*sum < *most_ns)
		return;
	*most_ns = *sum;
	*most = key;
}

static void enders__add(struct enders *e, u32 waiter_pid, struct thread_key by, u64 ns)
{
	if (!by.tid)
		return;
	add_to_most(e, by, ns, &e->thread, &e->thread_ns);
	if (by.pid != waiter_pid)
		add_to_most(e, (struct thread_key){ by.pid, 0 }, ns, &e->process, &e->process_ns);
}

/* Returns the thread that ended most waits, or the process if it did so by many threads, and the time. */
static struct thread_key enders__finish(struct enders *e, u64 *ns)
{
	bool is_process = e->process_ns > 2 * e->thread_ns;

	map__free(&e->sums);
	*ns = is_process ? e->process_ns : e->thread_ns;
	return is_process ? e->process : e->thread;
}

struct kind_sum {
	u64 ns, longest;
	const struct profile_key *key; /* of the longest */
};

static void add_wait(struct map *kinds, struct link *l, u32 kind, const struct profile_key *key,
		     const struct profile_cell *cell)
{
	struct kind_sum *sum = map__get(kinds, &kind);

	if (!sum)
		return;
	sum->ns += cell->ns;
	if (cell->ns > sum->longest) {
		sum->longest = cell->ns;
		sum->key = key;
	}
	if (sum->ns < l->kind_ns)
		return;
	l->kind_ns = sum->ns;
	l->kind = kind;
	l->wait = sum->key;
}

static bool is_lock(enum finding_kind kind)
{
	return kind == FINDING_LOCK || kind == FINDING_FILE_LOCK;
}

static bool is_one_of(struct thread_key thread, const struct thread_key *list, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (thread_key__is_same(thread, list[i]))
			return true;
	return false;
}

static bool is_process_of(u32 pid, const struct thread_key *list, u32 n)
{
	for (u32 i = 0; pid && i < n; i++)
		if (list[i].pid == pid)
			return true;
	return false;
}

/* Is it a server's wait for a request of the processes that wait for its answers? */
static bool is_for_request(const struct finding_input *in, const struct profile_key *key, enum finding_kind kind,
			   const struct thread_key *seen, u32 n)
{
	const struct osrt_file *file;

	if (kind != FINDING_PEER && kind != FINDING_IDLE)
		return false;
	if (key->caused_by.pid != key->thread.pid && is_process_of(key->caused_by.pid, seen, n))
		return true;
	file = kind == FINDING_PEER && n ? osrt_files__find(in->files, key->thread.pid, (u32)key->object) : NULL;
	return file && file->kind == SYSCALL_FILE_SOCKET && is_process_of(file->peer, seen, n);
}

/* A thread that waits for less than 1 / WAITS_PART of its time, its idle times not counted, has hardly any waits. */
#define WAITS_PART 20

/*
 * Finds the thread that ended most waits of l's thread, those for requests of `waiters` left out. If it has hardly any
 * waits, its idle times count as such, as a pool's thread is idle until a worker has a result.
 */
static void add_wakers(const struct finding_input *in, struct link *l, const struct thread_key *waiters, u32 n_waiters)
{
	const struct profile *p = in->profile;
	u64 known = l->active + l->idle_ns;
	bool is_idle = known >= l->wall || WAITS_PART * (l->wall - known) < l->wall;
	struct enders enders;

	enders__init(&enders);
	MAP_EACH_ENTRY(const struct profile_cell *cell, const struct profile_key *key, &p->cells) {
		if (is_of(key->thread, l->thread) && !is_of(key->caused_by, l->thread) &&
		    key->state == ACTIVITY_BLOCKED && (is_idle || cell->kind != FINDING_IDLE) &&
		    !is_for_request(in, key, cell->kind, waiters, n_waiters) &&
		    !(is_lock(l->kind) && is_one_of(key->caused_by, waiters, n_waiters)))
			enders__add(&enders, l->thread.pid, key->caused_by, cell->ns);
	}
	l->ended_by = enders__finish(&enders, &l->ended_ns);
	l->idle_ns = is_idle ? 0 : l->idle_ns;
}

/*
 * The kind of a wait. A background thread that sleeps now and then is idle by itself, but not if others wait for it.
 * The same is true of waits that a timeout ended and no thread, such as those for a batch to become full.
 */
static enum finding_kind kind_of(const struct profile *p, const struct profile_key *key,
				 const struct profile_cell *cell, bool is_waited_for)
{
	bool is_futex = cell->cause == ACTIVITY_FUTEX || cell->cause == ACTIVITY_CONDITION;

	if (cell->kind != FINDING_IDLE && cell->kind != FINDING_CONDITION)
		return cell->kind;
	if (is_waited_for && cell->cause == ACTIVITY_SLEEP)
		return FINDING_SLEEP;
	return is_waited_for && is_futex && p->has_sched && !key->caused_by.tid ? FINDING_CONDITION : FINDING_IDLE;
}

static void add_times(const struct profile *p, struct link *l)
{
	const struct profile_thread *one = map__find(&p->threads, &l->thread);

	if (l->thread.tid) {
		l->wall = one ? one->wall : 0;
		l->active = one ? one->run + one->runnable : 0;
		l->idle_ns = one ? one->idle_ns : 0;
		return;
	}
	/* a thread that accepts connections is idle all the time */
	MAP_EACH_ENTRY(const struct profile_thread *t, const struct thread_key *key, &p->threads) {
		if (key->pid != l->thread.pid)
			continue;
		l->wall += t->wall - (t->idle_ns < t->wall ? t->idle_ns : t->wall);
		l->active += t->run + t->runnable;
	}
}

/*
 * seen: the threads before this one in the chain, which wait for it. The time in which it waits for their requests is
 * no part of what they wait for. Threads that wait for the same lock end each other's waits. So if this thread waited
 * for a lock, the threads in `seen` are not considered as those that ended its waits.
 */
static struct link link_of(const struct finding_input *in, struct thread_key thread, const struct thread_key *seen,
			   u32 n_seen)
{
	const struct profile *p = in->profile;
	struct link l = { .thread = thread, .is_waited_for = n_seen };
	struct map kinds;

	add_times(p, &l);
	if (!l.wall)
		return l;
	map__init(&kinds, sizeof(u32), sizeof(struct kind_sum));
	MAP_EACH_ENTRY(const struct profile_cell *cell, const struct profile_key *key, &p->cells) {
		enum finding_kind kind = kind_of(p, key, cell, l.is_waited_for);

		if (!is_of(key->thread, thread) || key->state != ACTIVITY_BLOCKED)
			continue;
		if (is_for_request(in, key, kind, seen, n_seen)) {
			/* add_times() has left out the idle times of a process already */
			if (thread.tid || kind != FINDING_IDLE)
				l.wall -= cell->ns < l.wall ? cell->ns : l.wall;
			l.idle_ns -= kind == FINDING_IDLE && cell->ns < l.idle_ns ? cell->ns : 0;
		} else if (is_explanation(kind)) {
			add_wait(&kinds, &l, kind, key, cell);
		}
	}
	map__free(&kinds);
	add_wakers(in, &l, seen, n_seen);
	return l;
}

/* The thread that ended most waits is named if it ended at least 1 / ENDED_PART of their time. */
#define ENDED_PART 5

/* What takes at least 1 / OWN_PART of a thread's time may be the cause. */
#define OWN_PART 4

/*
 * Is the thread itself the cause? It is if it ran for that part of its time, or spent that part in waits of one kind
 * that no other thread ends. Otherwise the cause is with the thread that ended its waits.
 */
static bool is_cause(const struct link *l)
{
	bool is_for_others = l->kind == FINDING_PEER || l->kind == FINDING_CHILD || l->kind == FINDING_GIL ||
			     l->kind == FINDING_CONDITION || is_lock(l->kind);
	bool is_ended_by_other = (is_lock(l->kind) ? ENDED_PART : 2) * l->ended_ns >= l->kind_ns;

	return OWN_PART * l->active >= l->wall ||
	       (OWN_PART * l->kind_ns >= l->wall && !(is_for_others && is_ended_by_other));
}

/*
 * Returns whether the thread mostly waits for timeouts, more than twice as long in total as each thread of the group
 * waited on average: then these timeouts do not cause the group's waits.
 */
static bool is_heartbeat(const struct link *l, const struct group *g)
{
	return l->kind == FINDING_CONDITION && l->active < l->kind_ns && 2 * g->ns < l->kind_ns * g->threads;
}

static u32 stack_of(const struct link *l)
{
	return l->wait ? l->wait->stack : 0;
}

static bool waits_in(const struct finding_input *in, u32 stack, const struct finding_code *code)
{
	struct finding_code other = { 0 };

	finding_code__fill(&other, in->stacks, stack);
	return *code->function && finding_code__is_same(code, &other);
}

static void add_caller(const struct finding_input *in, const struct link *l, struct finding_code *code)
{
	const struct profile *p = in->profile;
	struct callers callers;

	callers__init(&callers, in->stacks, stack_of(l));
	MAP_EACH_ENTRY(const struct profile_cell *cell, const struct profile_key *key, &p->cells) {
		if (is_of(key->thread, l->thread) && key->state == ACTIVITY_BLOCKED &&
		    kind_of(p, key, cell, l->is_waited_for) == l->kind)
			callers__add(&callers, key->stack, cell->ns);
	}
	callers__finish(&callers, code);
}

/* A thread that launches a kernel at least that often, ns of its time, does so rather than that it computes. */
#define LAUNCH_EVERY_NS 200000u

/* Writes how many kernels the thread launched, if it mostly did so. */
static bool launches(const struct finding_input *in, const struct link *l, char *buf, size_t size)
{
	u64 n = gpu_calls__launches(in, l->thread);

	if (n < 1 + l->active / LAUNCH_EVERY_NS)
		return false;
	snprintf(buf, size, "launched %s kernels, %s of CPU time each", TEXT_COUNT(n), TEXT_NS(l->active / n));
	return true;
}

/* Returns what the thread did. waiter: the code that waited. */
static struct finding_counterpart describe(const struct finding_input *in, const struct link *l,
					   const struct finding_code *waiter)
{
	struct finding_counterpart by = { .pid = l->thread.pid, .tid = l->thread.tid, .is_end_of_chain = true };
	const struct osrt_file *file;
	struct imported imported;
	struct computed c;

	/* threads that take turns wait in the same function: what one does when it is its turn makes the others wait */
	if (l->active >= l->kind_ns || (OWN_PART * l->active >= l->wall && waits_in(in, stack_of(l), waiter))) {
		if (launches(in, l, by.activity, sizeof(by.activity)))
			return by;
		computed__of_thread(&c, in, l->thread);
		computed__fill_code(in, l->thread, &c, &by.code);
		snprintf(by.activity, sizeof(by.activity), "%s",
			 computed__passes_data(&c) ? "pickled and copied data for other processes" : "computed");
		if (imported__of(&imported, in, l->thread.pid) || 2 * imported.sampled_ns < imported.all_ns ||
		    !imported.sampled_ns)
			return by;
		finding_code__fill(&by.code, in->stacks, imported.stack);
		snprintf(by.activity, sizeof(by.activity), "imported modules");
		return by;
	}
	finding_code__fill(&by.code, in->stacks, stack_of(l));
	add_caller(in, l, &by.code);
	by.is_pause = l->kind == FINDING_SLEEP && !stack_parts__of(in->stacks, stack_of(l)).serves;
	if (l->kind == FINDING_CONDITION)
		snprintf(by.activity, sizeof(by.activity), "waited until a timeout");
	else if (l->kind == FINDING_PEER && (file = osrt_files__find(in->files, l->thread.pid, (u32)l->wait->object)))
		snprintf(by.activity, sizeof(by.activity), "waited in %s of %s",
			 activity__name(in->activity, l->wait->reason), osrt_files__name(in->files, file->number));
	else
		finding_kind__phrase(l->kind, by.activity, sizeof(by.activity));
	return by;
}

static struct thread_key ender_of(const struct finding_input *in, const struct group *g, u64 *ns)
{
	struct enders enders;

	enders__init(&enders);
	for (u32 i = 0; i < g->n; i++) {
		const struct profile_key *key = profile__key(in->profile, g->cells[i]);

		enders__add(&enders, key->thread.pid, key->caused_by, profile__cell(in->profile, g->cells[i])->ns);
	}
	return enders__finish(&enders, ns);
}

bool waited_for__follow(const struct finding_input *in, const struct group *g, struct finding *f)
{
	u64 ended_ns;
	struct thread_key next = ender_of(in, g, &ended_ns), seen[HOPS_MAX + 2];
	struct link l;

	if (!g->n || !next.pid || ENDED_PART * ended_ns < g->ns - g->delay_ns)
		return false;
	seen[0] = profile__key(in->profile, g->cells[0])->thread;
	for (u32 hop = 1; hop <= HOPS_MAX; hop++) {
		l = link_of(in, next, seen, hop);
		if (!l.wall)
			return false;
		if (is_cause(&l))
			break;
		seen[hop] = next;
		next = l.ended_by;
		if (!next.pid || ENDED_PART * l.ended_ns + l.active + l.idle_ns < l.wall)
			return false;
		if (is_one_of(next, seen, hop + 1) || (!next.tid && is_process_of(next.pid, seen, hop + 1)))
			return false;
	}
	if (!is_cause(&l) || is_heartbeat(&l, g))
		return false;
	f->counterpart = describe(in, &l, &f->code);
	/* a chain that ends where it began explains nothing */
	if (finding_code__is_same(&f->counterpart.code, &f->code) &&
	    l.kind == profile__cell(in->profile, g->cells[0])->kind) {
		f->counterpart = (struct finding_counterpart){ 0 };
		return false;
	}
	f->confidence = FINDING_ATTRIBUTED;
	return true;
}

void waited_for__add_activity(const struct finding_input *in, const struct group *g, struct finding *f)
{
	struct finding_counterpart *by = &f->counterpart;
	struct thread_key waiter = profile__key(in->profile, g->cells[0])->thread;
	struct finding_counterpart does;
	struct link l;

	if (*by->activity || !by->tid)
		return;
	l = link_of(in, (struct thread_key){ by->pid, by->tid }, &waiter, 1);
	if (!l.wall || !is_cause(&l) || is_heartbeat(&l, g))
		return;
	/* what takes less than half of its time need not be what the others waited for */
	if (2 * l.active < l.wall && 2 * l.kind_ns < l.wall)
		return;
	does = describe(in, &l, &f->code);
	finding_counterpart__set_activity(by, &does.code, does.activity);
}

bool waited_for__add(const struct finding_input *in, struct thread_key thread, struct finding *f)
{
	struct link l = link_of(in, thread, NULL, 0);

	if (!l.wall || !is_cause(&l))
		return false;
	f->counterpart = describe(in, &l, &f->code);
	f->confidence = FINDING_ATTRIBUTED;
	return true;
}

bool waited_for__add_worker(const struct finding_input *in, const struct group *g, struct finding *f)
{
	struct thread_key worker = { 0, 0 };
	u32 n = 0;

	if (g->threads != 1 || f->tid != f->pid || 2 * g->ns < g->wall_ns)
		return false;
	MAP_EACH_ENTRY(const struct profile_thread *t, const struct thread_key *key, &in->profile->threads) {
		if (key->pid != f->pid || key->tid == f->pid || 2 * (t->run + t->runnable) < t->wall)
			continue;
		worker = *key;
		n++;
	}
	return n == 1 && waited_for__add(in, worker, f);
}

/* Is the thread idle in calls such as accept() for 95% of the time in which it does not wait for a lock? */
static bool is_idle_between_locks(const struct finding_input *in, struct thread_key thread,
				  const struct profile_thread *t)
{
	u64 locks = 0, idle = 0;

	MAP_EACH_ENTRY(const struct profile_cell *cell, const struct profile_key *key, &in->profile->cells) {
		if (!thread_key__is_same(key->thread, thread))
			continue;
		locks += is_lock(cell->kind) ? cell->ns : 0;
		idle += cell->kind == FINDING_IDLE && cell->cause == ACTIVITY_EVENTS ? cell->ns : 0;
	}
	/* cells have rounded times, whose sum may be above the thread's time */
	return idle && 20 * idle >= 19 * (t->wall > locks ? t->wall - locks : 0);
}

bool waited_for__is_idle(const struct finding_input *in, const struct group *g)
{
	struct group_most caused_by = group__most(in, g, GROUP_CAUSED_BY);
	struct thread_key thread = { (u32)(caused_by.value >> 32), (u32)caused_by.value };
	const struct profile_thread *t = map__find(&in->profile->threads, &thread);
	struct link l;

	if (!t || !g->n || 2 * caused_by.ns < g->ns - g->delay_ns)
		return false;
	if (is_lock(profile__cell(in->profile, g->cells[0])->kind))
		return is_idle_between_locks(in, thread, t);
	if (thread.pid != g->pid)
		return false;
	l = link_of(in, thread, NULL, 0);
	return 4 * (t->idle_ns + (l.kind == FINDING_SLEEP ? l.kind_ns : 0)) >= 3 * t->wall;
}
