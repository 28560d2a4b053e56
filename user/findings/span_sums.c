// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/span_sums.h"

#include <errno.h>
#include <stdio.h>

#include "model/vote.h"

struct entry {
	struct span_sum sum;
	struct vote stack;
};

struct sums {
	const struct query *q;
	struct map processes; /* u32 pid -> struct entry */
};

static int on_spans(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), module);
	struct common_fields f = common_fields__of(rows__event(rows));
	struct sums *s = arg;

	ROWS_EACH(v, rows) {
		u64 ns = query__inside(s->q, (u64)view__s64(&v, f.start), (u64)view__s64(&v, f.time));
		u32 pid = (u32)view__s64(&v, f.pid), len;
		s64 freed = view__get(&v, "collected");
		struct entry *e;
		const char *text;

		if (view__get(&v, "depth"))
			continue;
		e = map__get(&s->processes, &pid);
		if (!e)
			return -ENOMEM;
		e->sum.ns += ns;
		e->sum.n++;
		e->sum.freed += freed > 0 ? (u64)freed : 0;
		e->sum.full_collections += view__get(&v, "generation") == 2;
		vote(&e->stack, (u32)view__get(&v, "stack"), (double)ns);
		if (ns <= e->sum.longest)
			continue;
		e->sum.longest = ns;
		text = view__text(&v, module, &len);
		snprintf(e->sum.name, sizeof(e->sum.name), "%.*s", (int)len, text);
	}
	return 0;
}

u64 span_sums__wall(const struct finding_input *in, u32 pid)
{
	struct thread_key key = { pid, pid };
	const struct profile_thread *t = map__find(&in->profile->threads, &key);

	/* these families record all the time, unlike sched and sample */
	return t && t->wall ? t->wall + t->unmeasured : query__duration(in->q);
}

int span_sums__find(const struct finding_input *in, const char *event, enum finding_kind kind,
		    int (*complete)(const struct finding_input *in, const struct span_sum *s, struct finding *f),
		    struct map *pids, struct findings *out)
{
	struct sums s = { .q = in->q };
	int err;

	map__init(&s.processes, sizeof(u32), sizeof(struct entry));
	err = query__read_kind(in->q, event, on_spans, &s);
	for (u32 i = 0; !err && i < s.processes.n; i++) {
		struct entry *e = map__value(&s.processes, i);
		u32 pid = *(const u32 *)map__key(&s.processes, i);
		u64 wall = span_sums__wall(in, pid);
		struct finding *f;

		if (pids && !map__get(pids, &pid))
			err = -ENOMEM;
		if (e->sum.ns < wall / SPAN_SHARE_MIN || e->sum.ns < query__duration(in->q) / SPAN_SHARE_MIN)
			continue;
		f = findings__add(out, kind);
		if (!f)
			break;
		f->pid = pid;
		f->processes = f->threads = 1;
		f->lost_ns = e->sum.ns;
		f->wall_ns = wall > e->sum.ns ? wall : e->sum.ns;
		f->weight = (double)e->sum.ns * finding_kind__weight(kind);
		e->sum.stack = e->stack.id;
		finding_code__fill(&f->code, in->stacks, e->sum.stack);
		err = complete(in, &e->sum, f);
	}
	map__free(&s.processes);
	return err;
}
