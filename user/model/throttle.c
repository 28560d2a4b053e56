// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/throttle.h"

struct reading {
	int (*fn)(const struct throttle *t, void *arg);
	void *arg;
};

static int on_rows(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), cgroup);
	const struct reading *r = arg;
	int err = 0;

	ROWS_WHILE(!err, v, rows) {
		struct throttle t = {
			.pid = (u32)view__get(&v, "pid"),
			.since = (u64)view__get(&v, "since"),
			.time = (u64)view__get(&v, "time"),
			.quota = (u64)view__get(&v, "quota"),
			.period = (u64)view__get(&v, "period"),
			.throttled = (u64)view__get(&v, "throttled"),
			.periods = (u64)view__get(&v, "periods"),
			.throttled_periods = (u64)view__get(&v, "throttled_periods"),
		};

		t.cgroup = view__text(&v, cgroup, &t.cgroup_len);
		err = r->fn(&t, r->arg);
	}
	return err;
}

int throttles__read(const struct query *q, int (*fn)(const struct throttle *t, void *arg), void *arg)
{
	struct reading r = { fn, arg };

	return query__read_kind(q, "sched_throttle", on_rows, &r);
}
