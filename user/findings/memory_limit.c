// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/memory_limit.h"

#include <errno.h>
#include <stdio.h>

#include "findings/group.h"
#include "model/cpu_sums.h"
#include "output/text.h"

struct memory_limit {
	u64 bytes, reached;
};

static int on_rows(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), cgroup);
	struct map *limits = arg;

	ROWS_EACH(v, rows) {
		struct quota_key key = { .pid = (u32)view__get(&v, "pid") };
		struct memory_limit *limit;
		const char *text;
		u32 len;

		text = view__text(&v, cgroup, &len);
		snprintf(key.cgroup, sizeof(key.cgroup), "%.*s", (int)len, text);
		limit = map__get(limits, &key);
		if (!limit)
			return -ENOMEM;
		limit->bytes = (u64)view__get(&v, "limit");
		limit->reached += (u64)view__get(&v, "reached");
	}
	return 0;
}

int memory_limits__read(struct map *limits, const struct query *q)
{
	struct query all = *q;

	map__init(limits, sizeof(struct quota_key), sizeof(struct memory_limit));
	/* the records are of whole processes */
	all.tids.n = 0;
	return query__read_kind(&all, "sched_memory", on_rows, limits);
}

/* A limit that is reached less often costs little, as the kernel frees more than one page each time. */
#define PER_SECOND 5

bool memory_limit__add(const struct finding_input *in, struct finding *f)
{
	const struct memory_limit *most = NULL;
	const char *cgroup = NULL;
	char text[320];

	MAP_EACH_ENTRY(const struct memory_limit *limit, const struct quota_key *key, in->memory_limits) {
		if (key->pid != f->pid || (most && limit->reached <= most->reached))
			continue;
		most = limit;
		cgroup = key->cgroup;
	}
	if (!most || (double)most->reached < PER_SECOND * (double)query__measured(in->q) / 1e9)
		return false;
	snprintf(text, sizeof(text),
		 "its cgroup %s reached its memory limit of %s %s times: the kernel frees pages, which are read again",
		 cgroup, TEXT_BYTES(most->bytes), TEXT_COUNT(most->reached));
	finding__add_detail(f, text);
	return true;
}
