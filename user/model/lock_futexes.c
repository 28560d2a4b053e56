// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/lock_futexes.h"

#include <errno.h>
#include <stdlib.h>

#include "model/view.h"
#include "util/map.h"

struct futex_key {
	u64 futex;
	u32 pid;
	u32 tid; /* 0: the futex itself */
};

/* A thread's use of a futex */
struct user {
	u64 waits, woke;
	u64 changes; /* waits whose value differs from that of the last one: a barrier counts its rounds in its futex */
	u32 value;
};

struct futex {
	u64 waits, changes, woken;
	u64 woken_by_waiters;
	u32 both; /* number of threads that both wait and wake */
};

struct lock_futexes {
	struct map users; /* struct futex_key -> struct user */
	struct map futexes; /* struct futex_key -> struct futex */
	struct map gils; /* struct futex_key -> u8: futexes of GILs, whose waits are gil_wait events */
};

/* sizeof(pthread_cond_t) of glibc and musl; gil_wait's `gil` is its address. */
#define CONDITION_BYTES 48

struct fields {
	const struct schema_field *lock, *pid, *tid, *value, *waker_pid, *waker_tid, *owner, *result;
};

static int on_wait(struct lock_futexes *l, const struct view *v, const struct fields *f)
{
	struct futex_key key = { (u64)view__s64(v, f->lock), (u32)view__s64(v, f->pid), (u32)view__s64(v, f->tid) };
	u32 value = (u32)view__s64(v, f->value), waker = (u32)view__s64(v, f->waker_tid);
	struct user *u;

	/* a lock that names its owner needs no inference; with -EAGAIN the thread did not wait */
	if (view__s64(v, f->owner) || view__s64(v, f->result) == -EAGAIN)
		return 0;
	u = map__get(&l->users, &key);
	if (!u)
		return -ENOMEM;
	u->changes += u->waits && value != u->value;
	u->waits++;
	u->value = value;
	if (!waker || (u32)view__s64(v, f->waker_pid) != key.pid)
		return 0;
	key.tid = waker;
	u = map__get(&l->users, &key);
	if (!u)
		return -ENOMEM;
	u->woke++;
	return 0;
}

static int on_waits(const struct rows *rows, void *arg)
{
	struct fields f = {
		.lock = schema_event__field(rows__event(rows), "lock"),
		.pid = schema_event__field(rows__event(rows), "pid"),
		.tid = schema_event__field(rows__event(rows), "tid"),
		.value = schema_event__field(rows__event(rows), "value"),
		.waker_pid = schema_event__field(rows__event(rows), "waker_pid"),
		.waker_tid = schema_event__field(rows__event(rows), "waker_tid"),
		.owner = schema_event__field(rows__event(rows), "owner"),
		.result = schema_event__field(rows__event(rows), "result"),
	};
	int err = 0;

	ROWS_WHILE(!err, v, rows)
		err = on_wait(arg, &v, &f);
	return err;
}

static int on_gils(const struct rows *rows, void *arg)
{
	struct lock_futexes *l = arg;

	ROWS_EACH(v, rows) {
		struct futex_key key = { (u64)view__get(&v, "gil"), (u32)view__get(&v, "pid"), 0 };

		if (!map__get(&l->gils, &key))
			return -ENOMEM;
	}
	return 0;
}

static int sum_up(struct lock_futexes *l)
{
	for (u32 i = 0; i < l->users.n; i++) {
		const struct user *u = map__value(&l->users, i);
		struct futex_key key = *(const struct futex_key *)map__key(&l->users, i);
		struct futex *w;

		key.tid = 0;
		w = map__get(&l->futexes, &key);
		if (!w)
			return -ENOMEM;
		w->waits += u->waits;
		w->changes += u->changes;
		w->woken += u->woke;
		w->woken_by_waiters += u->waits ? u->woke : 0;
		w->both += u->waits && u->woke;
	}
	return 0;
}

int lock_futexes__load(struct lock_futexes **out, struct trace *trace)
{
	struct lock_futexes *l = calloc(1, sizeof(*l));
	int err;

	*out = l;
	if (!l)
		return -ENOMEM;
	map__init(&l->users, sizeof(struct futex_key), sizeof(struct user));
	map__init(&l->futexes, sizeof(struct futex_key), sizeof(struct futex));
	map__init(&l->gils, sizeof(struct futex_key), sizeof(u8));
	err = trace__read_kind(trace, "lock_wait", on_waits, l);
	if (!err && l->users.n)
		err = trace__read_kind(trace, "gil_wait", on_gils, l);
	if (!err)
		err = sum_up(l);
	map__free(&l->users);
	return err;
}

void lock_futexes__free(struct lock_futexes *l)
{
	if (!l)
		return;
	MAPS_FREE(&l->users, &l->futexes, &l->gils);
	free(l);
}

bool lock_futexes__is_gil(const struct lock_futexes *l, u32 pid, u64 futex)
{
	for (u64 at = 0; l->gils.n && at < CONDITION_BYTES && at <= futex; at += 4) {
		struct futex_key key = { futex - at, pid, 0 };

		if (map__find(&l->gils, &key))
			return true;
	}
	return false;
}

bool lock_futexes__has(const struct lock_futexes *l, u32 pid, u64 futex)
{
	struct futex_key key = { futex, pid, 0 };
	const struct futex *w = l ? map__find(&l->futexes, &key) : NULL;

	/* most of its waits are ended by waiters, and more than one thread both waits and wakes */
	return w && w->both > 1 && 2 * w->woken_by_waiters > w->woken && 2 * w->changes <= w->waits &&
	       !lock_futexes__is_gil(l, pid, futex);
}
