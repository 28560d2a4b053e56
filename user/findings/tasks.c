// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Waits of asyncio tasks, of which the threads show nothing: they are in their event loops meanwhile. Tasks were read
 * some times a second (sample_tasks); a reading stands for the time since the one before. Tasks that sleep, wait for
 * something to do or for other tasks are left out. Two kinds of such waits are findings: a request that waits for
 * an event or a future, and a task that waits in the `get` of a queue which serves as a pool (struct pool).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "findings/classify.h"
#include "findings/group.h"
#include "findings/rules.h"
#include "model/net_peers.h"
#include "model/query.h"
#include "output/text.h"
#include "util/path.h"

static const struct rule *rule_of(const struct stack_frame *f)
{
	/* packages have folders named asyncio, too: only the standard library counts */
	if (!stack_frame__is_library(f))
		return NULL;
	/* `async with` of a lock or a semaphore calls its `acquire` through this class */
	if (path__begins_with(f->name, "_ContextManagerMixin."))
		return NULL;
	return rule__of_task(f);
}

/* What the tasks of a reading waited for, and in which of the user's functions. */
struct task_wait {
	enum finding_kind kind;
	u32 user; /* frame; 0: none */
	const char *in; /* the function of asyncio that the user's code, or a package, called; "": none */
	bool is_package; /* the user's code called a package, which waits */
	bool sends; /* as of its rule */
};

/* Returns whether a framework called the user's code for a request which is not a stream or a connection that stays. */
static bool is_in_request(const struct stacks *stacks, u32 stack)
{
	const struct stack_frame *f;

	for (u32 at = stack; (f = stacks__frame(stacks, at)) != NULL; at = f->caller)
		if (stack_frame__is_package(f) &&
		    (strcasestr(f->name, "websocket") || strcasestr(f->file, "websocket") ||
		     strcasestr(f->name, "stream") || strcasestr(f->name, "lifespan")))
			return false;
	return stack_parts__of(stacks, stack).in_request;
}

/* What a request waits for in code of asyncio that may be idle elsewhere; FINDING_NONE: not known. */
static enum finding_kind kind_in_request(const struct task_wait *w)
{
	if (!*w->in)
		return FINDING_RESULT;
	return path__begins_with(w->in, "Event.") || path__begins_with(w->in, "Condition.") ? FINDING_CONDITION :
											      FINDING_NONE;
}

/* The function of asyncio nearest to the user's code decides: a queue's `get` may wait in a lock's `acquire`. */
static struct task_wait wait_of(const struct stacks *stacks, u32 stack, bool serves)
{
	struct task_wait w = { .kind = FINDING_NONE, .in = "" };
	const struct stack_frame *f;

	for (u32 at = stack; (f = stacks__frame(stacks, at)) != NULL && !w.user; at = f->caller) {
		const struct rule *rule = rule_of(f), *pool;

		if (rule) {
			w.kind = rule->kind;
			w.sends = rule->role == RULE_SENDS;
			w.in = f->name;
		} else if (stack_frame__is_package(f)) {
			/*
			 * a package that takes from a queue has a pool of connections; one that waits in no function
			 * of asyncio mostly waits for its server
			 */
			if (w.kind == FINDING_IDLE || !*w.in)
				w.kind = *w.in ? FINDING_QUEUE : FINDING_PEER;
			/* only if innermost: a pool's outer functions also call users of its connections */
			pool = rule__of(f);
			if (pool && pool->role == RULE_POOL && (!w.is_package || strstr(f->name, "wait_for"))) {
				w.kind = FINDING_QUEUE;
				w.in = f->name;
			}
			w.is_package = true;
		} else if (stack_frame__is_users(f)) {
			w.user = at;
		}
	}
	/* a server waits for its clients' requests */
	if (serves && w.kind == FINDING_PEER && !w.is_package)
		w.kind = FINDING_NONE;
	if (!w.user)
		w.kind = FINDING_NONE;
	if (w.kind == FINDING_NONE && w.user && !w.is_package && is_in_request(stacks, stack))
		w.kind = kind_in_request(&w);
	return w;
}

struct sum_key {
	u32 pid, code, kind;
};

struct part_key {
	struct sum_key sum;
	u32 stack, holder, last;
};

struct part {
	double task_ns;
	struct net_peer_key peer; /* of the last reading that had one; port 0: none had */
};

struct sum {
	u64 ns; /* of readings with at least one such task */
	double task_ns, all_ns; /* ns multiplied by the number of these tasks, and of all tasks */
	u64 begun; /* waits that were seen to begin */
	u64 last; /* time of the last reading that was added */
	/* that with most time */
	struct part_key part;
	double most;
	struct net_peer_key peer;
};

/*
 * A user's function that waits in Queue.get() and, further on, for others. A worker does so, and is idle while the
 * queue is empty. But while tasks wait for an object of a pool, all objects are in use: then as many tasks as ever are
 * in the rest of the function. As many workers as ever are busy, too, if they get little to do; but a worker is mostly
 * the outermost function of its task, and a function that takes from a pool is called by a request or other code.
 */
struct pool_key {
	u32 pid, code;
};

struct pool {
	u64 time; /* of the reading that the next two are of */
	u64 getting, using; /* tasks in Queue.get(), and tasks in the rest of the function */
	u64 most; /* of `using`, over all readings */
	u64 waits, full; /* readings with tasks in Queue.get(), and those of them with `most` tasks in the rest */
	u64 row; /* number of the last row of sample_tasks that was added: a recursive function counts once */
	bool is_called; /* the function that waits in Queue.get() is not the outermost one of its task */
};

/* Rows of a file that was made to exhaust memory add no more pools than this, each for so many of its frames. */
#define POOLS_MAX  (1u << 16)
#define POOL_DEPTH 64

/* The time that the readings of a process stand for. */
struct span_read {
	u64 first, last;
};

struct sums {
	const struct finding_input *in;
	struct map processes; /* u32 pid -> struct span_read */
	struct map sums; /* struct sum_key -> struct sum */
	struct map parts; /* struct part_key -> struct part */
	struct map pools; /* struct pool_key -> struct pool */
	u64 rows; /* that were added to pools */
};

struct reading {
	u32 pid, stack, holder, last;
	struct net_peer_key peer;
	u64 time, period, tasks, all, begun;
	bool serves;
};

/* Adds the reading that is complete. */
static void end_reading(struct pool *p)
{
	if (p->using > p->most) {
		p->most = p->using;
		p->full = 0;
	}
	p->waits += p->getting != 0;
	p->full += p->getting && p->using == p->most;
	p->getting = p->using = 0;
}

/* Returns whether a request or another function of the user called this one. */
static bool is_called(const struct stacks *stacks, u32 stack, const struct stack_frame *function)
{
	const struct stack_frame *f = function;

	for (u32 i = 0; i < POOL_DEPTH && (f = stacks__frame(stacks, f->caller)) != NULL; i++)
		if (stack_frame__is_own(f) && f->code != function->code)
			return true;
	return is_in_request(stacks, stack);
}

static int add_to_pools(struct sums *c, const struct reading *r, const struct task_wait *w)
{
	bool gets = w->kind == FINDING_IDLE;
	const struct stack_frame *f;
	u32 at = w->user;

	c->rows++;
	for (u32 i = 0; i < POOL_DEPTH && (f = stacks__frame(c->in->stacks, at)) != NULL; i++, at = f->caller) {
		struct pool_key key = { r->pid, f->code };
		struct pool *p;

		if (!stack_frame__is_own(f))
			continue;
		p = c->pools.n < POOLS_MAX ? map__get(&c->pools, &key) : map__find(&c->pools, &key);
		if (!p && c->pools.n < POOLS_MAX)
			return -ENOMEM;
		if (!p || p->row == c->rows)
			continue;
		if (p->time != r->time)
			end_reading(p);
		p->time = r->time;
		p->row = c->rows;
		*(gets ? &p->getting : &p->using) += r->tasks;
		p->is_called = p->is_called || (gets && is_called(c->in->stacks, r->stack, f));
		if (gets)
			break;
	}
	return 0;
}

/* At least so many of ten readings with tasks in Queue.get() have all objects of the pool in use. */
#define FULL_TENTHS 8

static bool is_full_pool(const struct sums *c, const struct sum_key *key)
{
	struct pool *p = map__find(&c->pools, &(struct pool_key){ key->pid, key->code });

	if (!p || !p->is_called)
		return false;
	end_reading(p);
	return p->most && p->waits && 10 * p->full >= FULL_TENTHS * p->waits;
}

static int add(struct sums *c, const struct reading *r)
{
	struct task_wait w = wait_of(c->in->stacks, r->stack, r->serves);
	const struct stack_frame *user = stacks__frame(c->in->stacks, w.user);
	struct part_key key = { { r->pid, user ? user->code : 0, w.kind }, r->stack, r->holder, r->last };
	u64 ns = r->period > r->time ? 0 : query__inside(c->in->q, r->time - r->period, r->time);
	struct span_read *span = map__get(&c->processes, &r->pid);
	struct sum *s;
	struct part *part;

	if (!span)
		return -ENOMEM;
	if (!span->last)
		span->first = r->time - (r->period < r->time ? r->period : r->time);
	span->last = r->time > span->last ? r->time : span->last;
	if (w.kind == FINDING_NONE || !ns)
		return 0;
	if (add_to_pools(c, r, &w))
		return -ENOMEM;
	s = map__get(&c->sums, &key.sum);
	part = map__get(&c->parts, &key);
	if (!s || !part)
		return -ENOMEM;
	if (s->last != r->time) {
		s->ns += ns;
		s->all_ns += (double)ns * (double)r->all;
	}
	s->last = r->time;
	s->task_ns += (double)ns * (double)r->tasks;
	s->begun += r->begun;
	part->task_ns += (double)ns * (double)r->tasks;
	if (r->peer.port)
		part->peer = r->peer;
	if (part->task_ns > s->most) {
		s->most = part->task_ns;
		s->part = key;
		s->peer = part->peer;
	}
	return 0;
}

static int on_tasks(const struct rows *rows, void *arg)
{
	struct common_fields f = common_fields__of(rows__event(rows));
	FIELDS_OF(rows__event(rows), stack, holder, last, peer_high, peer_low, peer_port);
	FIELDS_OF(rows__event(rows), period, tasks, all, begun, serves);
	int err = 0;

	ROWS_WHILE(!err, v, rows) {
		struct reading r = {
			.pid = (u32)view__s64(&v, f.pid),
			.stack = (u32)view__s64(&v, stack),
			.holder = (u32)view__s64(&v, holder),
			.last = (u32)view__s64(&v, last),
			.peer.high = (u64)view__s64(&v, peer_high),
			.peer.low = (u64)view__s64(&v, peer_low),
			.peer.port = (u32)view__s64(&v, peer_port),
			.time = (u64)view__s64(&v, f.time),
			.period = (u64)view__s64(&v, period),
			.tasks = (u64)view__s64(&v, tasks),
			.all = (u64)view__s64(&v, all),
			.begun = (u64)view__s64(&v, begun),
			.serves = view__s64(&v, serves),
		};

		err = add(arg, &r);
	}
	return err;
}

/*
 * A finding takes at least a twentieth of the time; waits for peers, which clients of a healthy server have too, a
 * tenth. Waits that take more than a quarter of the time each are for
 * something to do, and no finding, unless they are for a lock or a semaphore, or to send something.
 */
#define SHARE_MIN	20
#define PEER_SHARE_MIN	10
#define BACKGROUND_PART 4
/* While tasks wait for peers, others may work; tasks that wait for one another's lock do not. */
#define PEER_WEIGHT 0.5

/* Writes " from 127.0.0.1:8441" if the peer is known. */
static char *peer_text(const struct net_peer_key *peer, const char *before, char *buf, size_t size)
{
	char text[64];

	snprintf(buf, size, "%s%s", peer->port ? before : "",
		 peer->port ? net_peer_key__text(peer, text, sizeof(text)) : "");
	return buf;
}

/* Adds the function that the tasks awaited, and the peer for which they waited, or one of several. */
static void add_object(const struct sum *s, enum finding_kind kind, const char *function, struct finding *f)
{
	struct text_buffer object = { .buf = f->object, .size = sizeof(f->object) };
	char peer[96];

	if (*function)
		text__add(&object, "await of %s", function);
	if (kind == FINDING_PEER && s->peer.port)
		text__add(&object, "%s%s", *function ? ", " : "",
			  peer_text(&s->peer, f->tasks < 1.5 ? "peer " : "peers such as ", peer, sizeof(peer)));
}

/* Adds the task that holds the lock, and what it waits for, or the last of the tasks for which it waits. */
static void add_holder(const struct finding_input *in, const struct sum *sum, struct finding *f)
{
	const struct part_key *part = &sum->part;
	u32 stack = part->last ? part->last : part->holder;
	struct task_wait w = wait_of(in->stacks, stack, false);
	struct text_buffer s = { .buf = f->counterpart.activity, .size = sizeof(f->counterpart.activity) };
	struct finding_code last = { 0 };
	char peer[96];

	if (!part->holder)
		return;
	finding_code__fill(&f->counterpart.code, in->stacks, part->holder);
	f->counterpart.is_holder = true;
	if (sum->peer.port && !w.sends)
		text__add(&s, "awaited a reply%s", peer_text(&sum->peer, " from ", peer, sizeof(peer)));
	else if (*w.in)
		text__add(&s, "awaited %s%s", w.in, peer_text(&sum->peer, " to ", peer, sizeof(peer)));
	else if (part->last)
		text__add(&s, "awaited a task");
	if (part->last)
		finding_code__fill(&last, in->stacks, part->last);
	finding_code__add(&s, " in ", &last);
}

/* Adds the user's function that called the one which waits: a helper is called by many. */
static void add_caller(const struct finding_input *in, const struct sum *s, struct finding *f)
{
	struct finding_code caller = { 0 };
	char text[224];

	if (2 * s->most < s->task_ns)
		return;
	finding_code__fill_caller(&caller, in->stacks, s->part.stack);
	if (!*caller.function)
		return;
	finding_code__write(&caller, " by ", s->most < 0.9 * s->task_ns ? "mostly called" : "called", text,
			    sizeof(text));
	finding__add_detail(f, text);
}

static int add_finding(const struct sums *c, const struct sum_key *key, const struct sum *s, struct findings *out)
{
	const struct finding_input *in = c->in;
	const struct span_read *span = map__find(&c->processes, &key->pid);
	enum finding_kind kind = key->kind;
	u64 duration = query__inside(in->q, span->first, span->last), times = s->begun ? s->begun : 1;
	struct task_wait w = wait_of(in->stacks, s->part.stack, false);
	struct finding *f;

	if (!s->ns || s->ns < duration / (kind == FINDING_PEER ? PEER_SHARE_MIN : SHARE_MIN) ||
	    (kind != FINDING_LOCK && kind != FINDING_SEMAPHORE && !w.sends &&
	     s->ns / times > duration / BACKGROUND_PART))
		return 0;
	if (kind == FINDING_IDLE) {
		if (!is_full_pool(c, key))
			return 0;
		kind = FINDING_QUEUE;
	}
	f = findings__add(out, kind);
	if (!f)
		return -ENOMEM;
	f->pid = key->pid;
	f->tasks = s->task_ns / (double)s->ns;
	f->all_tasks = s->all_ns / (double)s->ns;
	f->processes = f->threads = 1;
	f->lost_ns = s->ns;
	f->wall_ns = duration > s->ns ? duration : s->ns;
	f->confidence = FINDING_ATTRIBUTED;
	f->weight = (double)s->ns *
		    (kind == FINDING_QUEUE || kind == FINDING_LOCK || kind == FINDING_SEMAPHORE ? 1 : PEER_WEIGHT);
	finding_code__fill(&f->code, in->stacks, s->part.stack);
	add_object(s, kind, w.in, f);
	snprintf(f->report, sizeof(f->report), "offcpu");
	add_caller(in, s, f);
	add_holder(in, s, f);
	return 0;
}

static int find(const struct finding_input *in, struct findings *out)
{
	struct sums c = { .in = in };
	int err;

	map__init(&c.processes, sizeof(u32), sizeof(struct span_read));
	map__init(&c.sums, sizeof(struct sum_key), sizeof(struct sum));
	map__init(&c.parts, sizeof(struct part_key), sizeof(struct part));
	map__init(&c.pools, sizeof(struct pool_key), sizeof(struct pool));
	err = query__read_kind(in->q, "sample_tasks", on_tasks, &c);
	for (u32 i = 0; i < c.sums.n && !err; i++)
		err = add_finding(&c, map__key(&c.sums, i), map__value(&c.sums, i), out);
	MAPS_FREE(&c.processes, &c.sums, &c.parts, &c.pools);
	return err;
}

FINDINGS(tasks) = { .name = "tasks", .find = find };
