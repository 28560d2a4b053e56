// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Report locks: which code held the locks that threads waited for (lock_blame.c), then the waits by futex. The table of
 * futexes needs no stacks, and has what tables by code lack: waits that timed out, were refused or had not ended, and
 * wakers of other processes. Counts episodes: all waits of a thread for a lock until it has taken and released it, or
 * waits for another.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/stats.h"
#include "output/text.h"
#include "report/os/lock_blame.h"
#include "util/path.h"
#include "util/recent.h"

struct lock_key {
	u64 lock;
	u32 pid;
	u32 unused;
};

/*
 * A thread has one open episode, but its waits in the rings of two CPUs may arrive in the wrong order. So the last
 * EPISODES_OF_THREAD episodes of each thread are open.
 */
#define EPISODES_OF_THREAD 16

struct episode_key {
	u32 pid, tid;
	u32 slot; /* the episode's number modulo EPISODES_OF_THREAD */
	u32 unused;
};

struct episode {
	struct locks *locks; /* NULL: none yet */
	struct lock *lock;
	u64 ns; /* sum of its waits */
	u64 number;
};

/* An episode is also ended when this many others began since its last wait. At most twice as many are stored. */
#define EPISODES_OPEN (1u << 17)

/*
 * A call site is recorded once per process id. A later process with the same id uses what was recorded for the
 * earlier one, unless it has a record of its own.
 */
struct site_key {
	u64 address;
	u32 pid;
	u32 is_any_process; /* 1: for any process with this pid */
};

/* Key to count the threads or sites of a lock. */
struct tally_key {
	struct lock_key lock;
	u64 value;
};

struct lock {
	struct stats time; /* of episodes */
	u64 waits, refused, timed_out, n_open;
	u32 threads;
	u64 site, site_n, owner, owner_n, waker, waker_n; /* the most frequent ones */
};

struct site {
	u32 symbol, module; /* strings */
};

struct locks {
	const struct query *args;
	struct stats_pool pool;
	struct map locks; /* struct lock_key -> struct lock */
	struct recent episodes; /* struct episode_key -> struct episode */
	struct map sites; /* struct site_key -> struct site */
	struct map by_site, by_owner, by_waker, by_waiter; /* struct tally_key -> u64 */
	u64 waits, total, open, longest_open, with_caller;
	struct episode_key stuck;
	struct lock_key stuck_lock;
	bool failed; /* there was no memory for an episode's time */
};

struct fields {
	struct common_fields common;
	const struct schema_field *lock, *site, *caller, *owner, *waker_tid, *episode, *result;
};

/* Counts `value`, and updates the most frequent one. */
static int tally(struct map *m, const struct lock_key *lock, u64 value, u64 *most, u64 *most_n)
{
	struct tally_key key = { *lock, value };
	u64 *n = value ? map__get(m, &key) : NULL;

	if (!value)
		return 0;
	if (!n)
		return -ENOMEM;
	if (++*n > *most_n) {
		*most_n = *n;
		*most = value;
	}
	return 0;
}

static int note_people(struct locks *l, struct lock *lock, const struct lock_key *key, const struct view *v,
		       const struct fields *f)
{
	u64 unused = 0, unused_n = 0;
	u32 known = l->by_waiter.n;
	int err = tally(&l->by_waiter, key, (u32)view__s64(v, f->common.tid), &unused, &unused_n);

	lock->threads += l->by_waiter.n - known;
	if (!err)
		err = tally(&l->by_site, key, (u64)view__s64(v, f->site), &lock->site, &lock->site_n);
	if (!err)
		err = tally(&l->by_owner, key, (u32)view__s64(v, f->owner), &lock->owner, &lock->owner_n);
	if (!err)
		err = tally(&l->by_waker, key, (u32)view__s64(v, f->waker_tid), &lock->waker, &lock->waker_n);
	l->with_caller += view__s64(v, f->caller) != 0;
	return err;
}

static void end_episode(void *value)
{
	struct episode *e = value;

	if (e->locks && stats__add(&e->lock->time, &e->locks->pool, e->ns))
		e->locks->failed = true;
}

static int on_wait(struct locks *l, const struct view *v, const struct fields *f)
{
	struct lock_key key = { (u64)view__s64(v, f->lock), (u32)view__s64(v, f->common.pid), 0 };
	u64 number = (u64)view__s64(v, f->episode);
	struct episode_key ekey = { key.pid, (u32)view__s64(v, f->common.tid), number % EPISODES_OF_THREAD, 0 };
	u64 start = (u64)view__s64(v, f->common.start), end = (u64)view__s64(v, f->common.time), ns = end - start;
	s64 result = view__s64(v, f->result);
	struct lock *lock = map__get(&l->locks, &key);
	struct episode *e;

	if (!lock)
		return -ENOMEM;
	if (view__s64(v, f->common.flags) & EVENT_OPEN) {
		lock->n_open++;
		l->open++;
		if (ns >= l->longest_open) {
			l->longest_open = ns;
			l->stuck = ekey;
			l->stuck_lock = key;
		}
	}
	if (result == -EAGAIN) {
		lock->refused++;
		return 0;
	}
	lock->waits++;
	lock->timed_out += result == -ETIMEDOUT;
	l->waits++;
	l->total += ns;
	e = recent__get(&l->episodes, &ekey);
	if (!e)
		return -ENOMEM;
	if (e->number != number) {
		end_episode(e);
		e->ns = 0;
	}
	*e = (struct episode){ l, lock, e->ns + ns, number };
	return note_people(l, lock, &key, v, f);
}

static int on_waits(const struct rows *rows, void *arg)
{
	struct fields f = {
		.common = common_fields__of(rows__event(rows)),
		.lock = schema_event__field(rows__event(rows), "lock"),
		.site = schema_event__field(rows__event(rows), "site"),
		.caller = schema_event__field(rows__event(rows), "caller"),
		.owner = schema_event__field(rows__event(rows), "owner"),
		.waker_tid = schema_event__field(rows__event(rows), "waker_tid"),
		.episode = schema_event__field(rows__event(rows), "episode"),
		.result = schema_event__field(rows__event(rows), "result"),
	};
	int err = 0;

	ROWS_WHILE(!err, v, rows)
		err = on_wait(arg, &v, &f);
	return err;
}

static int on_sites(const struct rows *rows, void *arg)
{
	struct locks *l = arg;

	ROWS_EACH(v, rows) {
		struct site site = { (u32)view__get(&v, "symbol"), (u32)view__get(&v, "module") };
		struct site_key key = { (u64)view__get(&v, "address"), (u32)view__get(&v, "pid"), 0 };
		struct site *own = map__get(&l->sites, &key), *any;

		if (!own)
			return -ENOMEM;
		*own = site;
		key.pid = names__number(l->args->names, key.pid);
		key.is_any_process = 1;
		any = map__get(&l->sites, &key);
		if (!any)
			return -ENOMEM;
		*any = site;
	}
	return 0;
}

static int read_all(struct locks *l)
{
	struct query all = *l->args;
	int err;

	/* A site is recorded only at its first use. */
	all.from = all.to = 0;
	all.tids.n = 0;
	err = query__read_kind(&all, "lock_site", on_sites, l);
	if (!err)
		err = query__read_kind(l->args, "lock_wait", on_waits, l);
	recent__clear(&l->episodes);
	return l->failed ? -ENOMEM : err;
}

/* Returns "take+0x1a (program)" or, without a name, "0x55..."; NULL: no site. */
static const char *site_name(const struct locks *l, u32 pid, u64 address, char *buf, size_t size)
{
	struct site_key key = { address, pid, 0 };
	const struct site *site = map__find(&l->sites, &key);
	const char *symbol, *module, *file;

	if (!address)
		return NULL;
	if (!site) {
		key.pid = names__number(l->args->names, pid);
		key.is_any_process = 1;
		site = map__find(&l->sites, &key);
	}
	if (!site) {
		snprintf(buf, size, "0x%llx", address);
		return buf;
	}
	symbol = names__string(l->args->names, site->symbol);
	module = names__string(l->args->names, site->module);
	file = path__file_name(module);
	if (*symbol)
		snprintf(buf, size, "%s (%s)", symbol, file);
	else
		snprintf(buf, size, "0x%llx (%s)", address, file);
	return buf;
}

/* Indices of columns that findings use. */
enum { LOCK_PID = 0, LOCK_ADDRESS = 2, LOCK_WAITS = 4, LOCK_TOTAL = 5, LOCK_THREADS = 9, LOCK_SITE = 17 };

static const struct column locks_columns[] = {
	[LOCK_PID] = { "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	[LOCK_ADDRESS] = { "lock", "Lock", VALUE_U64, SHOW_HEX },
	{ "episodes", "Episodes", VALUE_U64, SHOW_COUNT },
	[LOCK_WAITS] = { "waits", "Waits", VALUE_U64, SHOW_COUNT },
	[LOCK_TOTAL] = { "total_ns", "Total", VALUE_U64, SHOW_NS },
	{ "avg_ns", "Avg", VALUE_DOUBLE, SHOW_NEVER },
	{ "median_ns", "Med", VALUE_DOUBLE, SHOW_NS },
	{ "max_ns", "Max", VALUE_U64, SHOW_NS },
	[LOCK_THREADS] = { "threads", "Threads", VALUE_U64, SHOW_COUNT },
	{ "timed_out", "Timed out", VALUE_U64, SHOW_COUNT },
	{ "refused", "Returned at once", VALUE_U64, SHOW_NEVER },
	{ "open", "Not ended", VALUE_U64, SHOW_NEVER },
	{ "owner_tid", "Mostly held by", VALUE_U64, SHOW_PLAIN },
	{ "owner_waits", "Waits for that holder", VALUE_U64, SHOW_NEVER },
	{ "waker_tid", "Released by", VALUE_U64, SHOW_PLAIN },
	{ "waker_waits", "Wakes by that thread", VALUE_U64, SHOW_NEVER },
	[LOCK_SITE] = { "site", "Waited for in", VALUE_TEXT, SHOW_PLAIN },
	{ "site_waits", "Waits there", VALUE_U64, SHOW_NEVER },
};

static struct value known_value(u64 what)
{
	return what ? V_U64(what) : V_NONE;
}

/* The waiter's process writes the owner's tid: another process's counts only if the kernel saw it wake waiters. */
static u32 owner_of(const struct locks *l, u32 pid, const struct lock *lock)
{
	u32 tid = names__thread_of(l->args->names, pid, (u32)lock->owner);

	return tid || names__number(l->args->names, (u32)lock->waker) != lock->owner ? tid : (u32)lock->owner;
}

static void fill_locks(struct locks *l, struct table *t)
{
	const struct lock_key *k;
	struct lock *lock;
	char site[512];
	bool timed;

	for (u32 i = 0; i < l->locks.n; i++) {
		k = map__key(&l->locks, i);
		lock = map__value(&l->locks, i);
		timed = lock->time.count;
		lock->owner = owner_of(l, k->pid, lock);
		lock->owner_n = lock->owner ? lock->owner_n : 0;
		table__add(t, V_U64(k->pid), V_TEXT(NAMES_TITLE(l->args->names, k->pid, 0)), V_U64(k->lock),
			   V_U64(lock->time.count), V_U64(lock->waits), V_U64(lock->time.total),
			   timed ? V_DBL(lock->time.mean) : V_NONE, timed ? V_DBL(stats__median(&lock->time)) : V_NONE,
			   timed ? V_U64(lock->time.max) : V_NONE, V_U64(lock->threads), V_U64(lock->timed_out),
			   V_U64(lock->refused), V_U64(lock->n_open), known_value(lock->owner),
			   known_value(lock->owner_n), known_value(lock->waker), known_value(lock->waker_n),
			   V_TEXT(site_name(l, k->pid, lock->site, site, sizeof(site))), known_value(lock->site_n));
	}
	table__sort(t, "total_ns");
}

/*
 * The longest wait is often that of an idle thread for an empty queue, which only this thread waits for. Then the
 * longest of the locks with several waiting threads is named, too.
 */
static void add_shared_finding(struct locks *l, struct report_output *out, const struct table *t)
{
	char who[64];
	u32 i = 0;

	while (i < t->n_rows && table__row(t, i)[LOCK_THREADS].u < 2)
		i++;
	if (i && i < t->n_rows) {
		const struct value *row = table__row(t, i);

		report_output__finding(out,
				       "Of the locks that several threads waited for, 0x%llx of %s took most: %s%s%s.",
				       row[LOCK_ADDRESS].u,
				       names__label(l->args->names, who, sizeof(who), (u32)row[LOCK_PID].u, 0),
				       TEXT_NS(row[LOCK_TOTAL].u), row[LOCK_SITE].type == VALUE_TEXT ? ", in " : "",
				       row[LOCK_SITE].type == VALUE_TEXT ? row[LOCK_SITE].text : "");
		REPORT_FIGURES(out, FIGURE("pid", row[LOCK_PID]), FIGURE("lock", row[LOCK_ADDRESS]),
			       FIGURE("waits", row[LOCK_WAITS]), FIGURE("lock_ns", row[LOCK_TOTAL]),
			       FIGURE("threads", row[LOCK_THREADS]), FIGURE("site", row[LOCK_SITE]));
	}
}

static void add_findings(struct locks *l, struct report_output *out, const struct table *t)
{
	char who[64];
	const struct value *top;
	u32 locks = 0;

	for (u32 i = 0; i < l->locks.n; i++)
		locks += ((const struct lock *)map__value(&l->locks, i))->waits != 0;
	if (l->waits && t->n_rows) {
		top = table__row(t, 0);
		report_output__finding(
			out, "%s wait%s for %u lock%s or condition%s took %s; %.0f%% of that at 0x%llx of %s%s%s.",
			TEXT_COUNT(l->waits), text__s(l->waits), locks, text__s(locks), text__s(locks),
			TEXT_NS(l->total), table__percent(top[LOCK_TOTAL].u, l->total), top[LOCK_ADDRESS].u,
			names__label(l->args->names, who, sizeof(who), (u32)top[LOCK_PID].u, 0),
			top[LOCK_SITE].type == VALUE_TEXT ? ", in " : "",
			top[LOCK_SITE].type == VALUE_TEXT ? top[LOCK_SITE].text : "");
		REPORT_FIGURES(out, FIGURE("waits", V_U64(l->waits)), FIGURE("locks", V_U64(locks)),
			       FIGURE("wait_ns", V_U64(l->total)), FIGURE("pid", top[LOCK_PID]),
			       FIGURE("lock", top[LOCK_ADDRESS]), FIGURE("lock_ns", top[LOCK_TOTAL]),
			       FIGURE("site", top[LOCK_SITE]));
	}
	add_shared_finding(l, out, t);
	if (l->open)
		report_output__finding(out, "%llu wait%s had not ended; the longest, of %s at 0x%llx, lasted %s.",
				       l->open, text__s(l->open),
				       names__label(l->args->names, who, sizeof(who), l->stuck.pid, l->stuck.tid),
				       l->stuck_lock.lock, TEXT_NS(l->longest_open));
	if (l->waits && !l->with_caller)
		report_output__note(out, "No frame pointers: callers of the call sites are not known.");
	if (l->waits)
		report_output__note(out,
				    "A wait is for a mutex, a condition, a semaphore, a barrier or a thread's end: the "
				    "kernel does not know which. Idle threads wait too.");
	if (l->pool.approximate)
		report_output__note(out, "Medians of locks beyond %u episodes are within 0.4%%.", STATS_EXACT);
}

static void locks__free(struct locks *l)
{
	for (u32 i = 0; i < l->locks.n; i++)
		stats__free(&((struct lock *)map__value(&l->locks, i))->time, &l->pool);
	MAPS_FREE(&l->locks, &l->sites, &l->by_site, &l->by_owner, &l->by_waker, &l->by_waiter);
}

static int run(const struct query *args, struct report_output *out)
{
	struct locks l = { .args = args };
	struct table *locks;
	bool is_blamed = false;
	int err;

	map__init(&l.locks, sizeof(struct lock_key), sizeof(struct lock));
	recent__init(&l.episodes, sizeof(struct episode_key), sizeof(struct episode), EPISODES_OPEN);
	l.episodes.release = end_episode;
	map__init(&l.sites, sizeof(struct site_key), sizeof(struct site));
	map__init(&l.by_site, sizeof(struct tally_key), sizeof(u64));
	map__init(&l.by_owner, sizeof(struct tally_key), sizeof(u64));
	map__init(&l.by_waker, sizeof(struct tally_key), sizeof(u64));
	map__init(&l.by_waiter, sizeof(struct tally_key), sizeof(u64));
	err = read_all(&l);
	if (!err)
		err = lock_blame_tables__add(args, out, &is_blamed);
	locks = REPORT_TABLE(out, "locks", "Locks and conditions waited for", locks_columns);
	locks->limit = 30;
	locks->details = "threads timed_out median_ns episodes";
	fill_locks(&l, locks);
	if (!l.locks.n && !is_blamed)
		report__nothing(args, out, "No wait for a lock was recorded", "lock");
	add_findings(&l, out, locks);
	locks__free(&l);
	return err;
}

REPORT(locks) = {
	.name = "locks",
	.doc = "contended locks and conditions: which code waited, which code held them, and what it did meanwhile",
	.kinds = "lock_wait,sample_wake",
	.run = run,
	.groups = "nvtx",
	.nvtx = NVTX_PARTS_LOCK,
};
