// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A cause as a sentence: the process, how long, for what, with the figures that the family's own events have. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/lock_futexes.h"
#include "output/text.h"
#include "report/causes.h"

struct sentence {
	char *buf;
	size_t size, len;
};

static void __attribute__((format(printf, 2, 3))) sentence__add(struct sentence *s, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(s->buf + s->len, s->size - s->len, format, ap);
	va_end(ap);
	if (n > 0)
		s->len = s->len + (size_t)n < s->size ? s->len + (size_t)n : s->size - 1;
}

/* Sums by a key of up to three numbers; the largest sum is quoted */
struct tally_key {
	u64 a, b, c;
};

struct tally {
	u64 ns, n;
	char disk[17];
};

struct details {
	const struct query *args;
	const struct causes *all;
	const struct cause *cause;
	struct lock_futexes *locks;
	struct map by; /* struct tally_key -> struct tally */
	struct map people; /* struct tally_key (a: as in `by`, b: thread) -> struct tally */
	struct tally_key found; /* what on_names looks for */
	char name[256];
	u64 quota, period, throttled, throttled_periods, periods;
};

static int count(struct map *m, const struct tally_key *key, u64 ns, struct tally **out)
{
	struct tally *t = map__get(m, key);

	if (!t)
		return -ENOMEM;
	t->ns += ns;
	t->n++;
	if (out)
		*out = t;
	return 0;
}

/* The largest by ns, among keys with this `a` if it is not 0; NULL: none. */
static const struct tally *largest(const struct map *m, u64 a, struct tally_key *key)
{
	const struct tally *best = NULL;

	for (u32 i = 0; i < m->n; i++) {
		const struct tally *t = map__value(m, i);
		const struct tally_key *k = map__key(m, i);

		if ((a && k->a != a) || (best && t->ns <= best->ns))
			continue;
		best = t;
		*key = *k;
	}
	return best;
}

/* The part of the event's duration that lies in the selected time: sentences count only that */
static u64 duration(const struct details *d, const struct view *v)
{
	return query__inside(d->args, (u64)view__get(v, "start"), (u64)view__get(v, "time"));
}

/* A sentence counts events of the threads that the cause's time was summed over, and of no others. */
static bool counts(const struct details *d, const struct view *v)
{
	return causes__counts(d->all, d->cause, (u32)view__get(v, "tid"));
}

static int on_locks(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct details *d = arg;
	int err = 0;

	for (; !err && v.i < rows__count(rows); v.i++) {
		struct tally_key lock = { (u64)view__get(&v, "lock"), 0, 0 };
		struct tally_key owner = { lock.a, (u64)view__get(&v, "owner"), 0 };
		bool says = owner.b != 0;

		/* without an owner it may be a condition; -EAGAIN: the thread did not wait */
		if (!counts(d, &v) || (!says && !lock_futexes__has(d->locks, d->cause->pid, lock.a)) ||
		    view__get(&v, "result") == -EAGAIN)
			continue;
		/* the waker released the lock, so it held it at that moment */
		if (!says)
			owner = (struct tally_key){ lock.a, (u64)view__get(&v, "waker_tid"), 1 };
		err = count(&d->by, &lock, duration(d, &v), NULL);
		if (!err && owner.b)
			err = count(&d->people, &owner, duration(d, &v), NULL);
	}
	return err;
}

static u32 how_many(const struct map *m, u64 a)
{
	u32 n = 0;

	for (u32 i = 0; i < m->n; i++)
		n += ((const struct tally_key *)map__key(m, i))->a == a;
	return n;
}

static int describe_lock(struct details *d, struct sentence *s)
{
	int err = lock_futexes__load(&d->locks, d->args->trace);
	const struct tally *lock, *owner;
	struct tally_key key = { 0 }, who = { 0 };
	char each[TEXT_NUMBER], label[64];
	const char *verb;
	u32 owners;

	if (!err)
		err = query__read_kind(d->args, "lock_wait", on_locks, d);
	lock = err ? NULL : largest(&d->by, 0, &key);
	if (!lock)
		return err;
	sentence__add(s, ": %llu wait%s for 0x%llx, %s%s", lock->n, lock->n == 1 ? "" : "s", key.a,
		      text__ns(each, sizeof(each), lock->ns / lock->n), lock->n == 1 ? "" : " each");
	owners = how_many(&d->people, key.a);
	owner = largest(&d->people, key.a, &who);
	if (!owner)
		return 0;
	verb = who.c ? "let go" : "held";
	names__label(d->args->names, label, sizeof(label), d->cause->pid, (u32)who.b);
	if (owners == 1)
		sentence__add(s, ", %s by %s", verb, label);
	else if (2 * owner->ns >= lock->ns)
		sentence__add(s, ", mostly %s by %s", verb, label);
	else
		sentence__add(s, ", %s by %u threads in turn (%s in %.0f%% of that time)", verb, owners, label,
			      100.0 * (double)owner->ns / (double)lock->ns);
	return 0;
}

static int on_ios(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	const struct schema_field *disk = schema_event__field(v.event, "disk");
	bool is_io = disk != NULL;
	struct details *d = arg;
	struct tally *t;
	const char *text;
	int err = 0;
	u32 len;

	for (; !err && v.i < rows__count(rows); v.i++) {
		/* a page fault counts as a read */
		struct tally_key key = { (u64)view__get(&v, "dev"), (u64)view__get(&v, "ino"),
					 is_io ? (u64)view__get(&v, "op") : 16 };

		/* the duration of an operation whose end was not recorded is not known */
		if (!counts(d, &v) || (is_io && view__get(&v, "asker")) ||
		    view__get(&v, "flags") & (EVENT_OPEN | EVENT_RETURN_NOT_SEEN))
			continue;
		err = count(&d->by, &key, duration(d, &v), &t);
		if (err || !is_io)
			continue;
		text = view__text(&v, disk, &len);
		snprintf(t->disk, sizeof(t->disk), "%.*s", (int)len, text);
	}
	return err;
}

static int on_names(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	const struct schema_field *path = schema_event__field(v.event, "path");
	struct details *d = arg;
	const char *text;
	u32 len;

	for (; v.i < rows__count(rows); v.i++) {
		if ((u64)view__get(&v, "dev") != d->found.a || (u64)view__get(&v, "ino") != d->found.b)
			continue;
		text = view__text(&v, path, &len);
		snprintf(d->name, sizeof(d->name), "%.*s", (int)len, text);
	}
	return 0;
}

/* The largest group of requests, or the call's own file where family disk recorded nothing. */
static int describe_disk(struct details *d, struct sentence *s, const struct cause *c)
{
	static const char *const ops[] = { "read", "write", "flush", "discard", "write of zeroes", "command" };
	struct query all = *d->args;
	const struct tally *t;
	char each[TEXT_NUMBER];
	int err;

	all.from = all.to = 0;
	all.pids.n = all.tids.n = 0;
	err = query__read_kind(d->args, "disk_io", on_ios, d);
	if (!err && !d->by.n)
		err = query__read_kind(d->args, "disk_fault", on_ios, d);
	t = err ? NULL : largest(&d->by, 0, &d->found);
	if (!t) {
		if (c->what)
			sentence__add(s, ": %llu times in %s%s%s", c->what_times, c->what, c->file ? " of " : "",
				      c->file ? c->file : "");
		return err;
	}
	err = query__read_kind(&all, "disk_file", on_names, d);
	sentence__add(s, ": %llu %s%s", t->n, d->found.c == 16 ? "page fault" : ops[d->found.c < 5 ? d->found.c : 5],
		      t->n == 1 ? "" : "s");
	if (*d->name)
		sentence__add(s, " of %s", d->name);
	if (*t->disk)
		sentence__add(s, " (%s)", t->disk);
	sentence__add(s, ", %s each", text__ns(each, sizeof(each), t->ns / t->n));
	return err;
}

static int on_throttles(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	const struct schema_field *path = schema_event__field(v.event, "cgroup");
	struct details *d = arg;
	const char *text;
	u32 len;

	for (; v.i < rows__count(rows); v.i++) {
		text = view__text(&v, path, &len);
		/* of several cgroup levels take the one that throttled longest */
		if (*d->name && (strlen(d->name) != len || memcmp(d->name, text, len))) {
			if ((u64)view__get(&v, "throttled") <= d->throttled)
				continue;
			d->throttled = d->throttled_periods = d->periods = 0;
		}
		snprintf(d->name, sizeof(d->name), "%.*s", (int)len, text);
		d->quota = (u64)view__get(&v, "quota");
		d->period = (u64)view__get(&v, "period");
		d->throttled += (u64)view__get(&v, "throttled");
		d->periods += (u64)view__get(&v, "periods");
		d->throttled_periods += (u64)view__get(&v, "throttled_periods");
	}
	return 0;
}

static int describe_quota(struct details *d, struct sentence *s)
{
	struct query all = *d->args;
	char quota[TEXT_NUMBER], period[TEXT_NUMBER], held[TEXT_NUMBER];
	int err;

	all.tids.n = 0;
	err = query__read_kind(&all, "sched_throttle", on_throttles, d);
	if (!err && *d->name)
		sentence__add(s, ": cgroup %s may use %s in each %s, and was throttled in %llu of %llu periods, for %s",
			      d->name, text__ns(quota, sizeof(quota), d->quota),
			      text__ns(period, sizeof(period), d->period), d->throttled_periods, d->periods,
			      text__ns(held, sizeof(held), d->throttled));
	return err;
}

static int on_gil(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct details *d = arg;
	int err = 0;

	for (; !err && v.i < rows__count(rows); v.i++) {
		struct tally_key all = { 1, 0, 0 }, who = { 1, (u64)view__get(&v, "dropper"), 0 };

		if (!counts(d, &v))
			continue;
		if (!who.b)
			who.b = (u64)view__get(&v, "holder");
		err = count(&d->by, &all, duration(d, &v), NULL);
		if (!err && who.b)
			err = count(&d->people, &who, duration(d, &v), NULL);
	}
	return err;
}

static int describe_gil(struct details *d, struct sentence *s, const struct cause *c)
{
	int err = query__read_kind(d->args, "gil_wait", on_gil, d);
	struct tally_key key = { 0 }, who = { 0 };
	const struct tally *all = err ? NULL : largest(&d->by, 0, &key);
	const struct tally *holder = err ? NULL : largest(&d->people, 0, &who);
	char label[64], each[TEXT_NUMBER];

	/* count and mean are of the same waits as the time: those off the CPU */
	sentence__add(s, ": %llu time%s, %s%s", c->times, c->times == 1 ? "" : "s",
		      text__ns(each, sizeof(each), c->ns / (c->times ? c->times : 1)), c->times == 1 ? "" : " each");
	if (holder)
		sentence__add(s, ", %.0f%% of that for %s", 100.0 * (double)holder->ns / (double)all->ns,
			      names__label(d->args->names, label, sizeof(label), d->cause->pid, (u32)who.b));
	return err;
}

/* "waited 83% of 5.1 s for the disk" without the figures */
static const struct phrase {
	const char *before, *after;
} phrases[CAUSE_KINDS] = {
	[CAUSE_RUN] = { "ran on a CPU", "" },
	[CAUSE_GIL] = { "waited", " for the GIL" },
	[CAUSE_LOCK] = { "waited", " for a lock" },
	[CAUSE_DISK] = { "waited", " for the disk" },
	[CAUSE_MEMORY] = { "freed or moved memory", " because it was short" },
	[CAUSE_QUOTA] = { "waited", " for a CPU: it was throttled by its CPU quota" },
	[CAUSE_CPU] = { "waited", " for a CPU while other threads ran" },
	[CAUSE_NETWORK] = { "waited", " for the network" },
	[CAUSE_LIBRARY] = { "waited", " in a library" },
	[CAUSE_CALL] = { "waited", " in a system call" },
	[CAUSE_BLOCKED] = { "waited uninterruptibly", ", as for a disk: -t +disk,syscall records the reason" },
	[CAUSE_SLEEP] = { "slept", " because it asked to" },
	[CAUSE_PEER] = { "waited", " for data from another process" },
	[CAUSE_FUTEX] = { "waited", " for a lock or a condition: -t +lock records which" },
	[CAUSE_IDLE] = { "was idle", "" },
	[CAUSE_ASLEEP] = { "was asleep", ": -t +syscall,lock records in which call" },
};

static void describe_calls(struct sentence *s, const struct cause *c)
{
	const char *mostly = 10 * c->what_ns < 9 * c->ns ? "mostly " : "";
	char each[TEXT_NUMBER];

	if (!c->what)
		return;
	if (c->what_times > 1)
		sentence__add(s, ": %s%llu times in %s%s%s, %s each", mostly, c->what_times, c->what,
			      c->file ? " of " : "", c->file ? c->file : "",
			      text__ns(each, sizeof(each), c->what_ns / c->what_times));
	else
		sentence__add(s, ": %sin %s%s%s", mostly, c->what, c->file ? " of " : "", c->file ? c->file : "");
}

static int describe_details(struct details *d, struct sentence *s, const struct cause *c)
{
	switch (c->kind) {
	case CAUSE_LOCK:
		return describe_lock(d, s);
	case CAUSE_DISK:
		return describe_disk(d, s, c);
	case CAUSE_QUOTA:
		return describe_quota(d, s);
	case CAUSE_GIL:
		return describe_gil(d, s, c);
	case CAUSE_FUTEX:
	case CAUSE_RUN:
	case CAUSE_CPU:
		return 0;
	default:
		describe_calls(s, c);
		return 0;
	}
}

int cause__say(const struct causes *all, const struct query *args, const struct cause *c, char *buf, size_t size)
{
	struct sentence s = { .buf = buf, .size = size };
	const struct phrase *p = &phrases[c->kind];
	struct query own = *args;
	struct details d = { .args = &own, .all = all, .cause = c };
	/* for threads that live one after the other, the time of all of them says more than that of one */
	bool brief = c->threads > 1 && c->wall_ns / c->threads < query__duration(args) / 10;
	char label[64], wall[TEXT_NUMBER];
	int err;

	own.pids = (struct trace_ids){ &c->pid, 1 };
	map__init(&d.by, sizeof(struct tally_key), sizeof(struct tally));
	map__init(&d.people, sizeof(struct tally_key), sizeof(struct tally));
	names__label(args->names, label, sizeof(label), c->pid, args->tids.n ? args->tids.list[0] : 0);
	sentence__add(&s, "%s ", label);
	if (c->threads > 1)
		sentence__add(&s, "(%u threads) ", c->threads);
	sentence__add(&s, "%s %.0f%% of %s%s%s", p->before, table__percent(c->ns, c->wall_ns),
		      text__ns(wall, sizeof(wall), brief ? c->wall_ns : c->wall_ns / c->threads),
		      brief ? " in all" : "", p->after);
	err = describe_details(&d, &s, c);
	sentence__add(&s, ".");
	lock_futexes__free(d.locks);
	map__free(&d.by);
	map__free(&d.people);
	return err;
}
