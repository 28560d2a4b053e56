// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Collects losses from the BPF counters and from the worker itself into meta_loss records. */
#include "record/drain/losses.h"

#include "record/discover/objects.h"
#include "record/parts.h"
#include "sonde.skel.h"
#include "trace/loss.h"
#include "util/array.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SUMS_MAX 512 /* beyond that, only one sum per family and reason is added */
#define COUNTERS (FAMILY_MAX * LOSS_REASONS)

struct losses {
	u64 reported[FAMILY_MAX][LOSS_REASONS];
	u64 recursion[FAMILY_MAX]; /* misses already reported, by family */
	u64 total;
	struct session_loss *sums;
	u32 n_sums;
	u64 last_poll;
	u32 cpus;
	struct family_losses per_cpu[];
};

int losses__new(struct session *s)
{
	int cpus = libbpf_num_possible_cpus();

	s->losses = calloc(1, sizeof(*s->losses) + cpus * sizeof(struct family_losses));
	if (!s->losses)
		return -ENOMEM;
	s->losses->cpus = cpus;
	s->losses->last_poll = session__now(s);
	return 0;
}

void losses__free(struct losses *l)
{
	if (!l)
		return;
	for (u32 i = 0; i < l->n_sums; i++)
		free(l->sums[i].evicted_path);
	free(l->sums);
	free(l);
}

static struct session_loss *sum_of(struct losses *l, const struct meta_loss *r, u16 object, bool outside)
{
	for (u32 i = 0; i < l->n_sums; i++) {
		struct session_loss *one = &l->sums[i];

		if (one->family == r->family && one->reason == r->reason && one->object == object &&
		    one->outside == outside && !one->evicted_path)
			return one;
	}
	return NULL;
}

/* Sums losses for the summary at the end, as a reader of the trace does. */
static void add_up(struct session *s, const struct meta_loss *r)
{
	/* before tracing is live, every loss is outside */
	bool outside = loss__is_outside(r->family, r->reason, r->first, r->last,
					s->time.started ? s->time.started : ~0ull, s->time.stopped);
	struct losses *l = s->losses;
	struct session_loss *one = sum_of(l, r, r->object, outside);
	u16 object = r->object;

	if (!loss__is_of_library(r->reason))
		l->total += r->count;
	/* attach gaps of many libraries are added up here; the trace has each of them */
	if (!one && l->n_sums >= SUMS_MAX) {
		object = 0;
		one = sum_of(l, r, object, outside);
	}
	if (one) {
		one->count += r->count;
		one->first = r->first < one->first ? r->first : one->first;
		one->last = r->last > one->last ? r->last : one->last;
		return;
	}
	if (!array__push(l->sums, l->n_sums,
			 (struct session_loss){
				 .family = r->family,
				 .object = object,
				 .reason = r->reason,
				 .count = r->count,
				 .first = r->first,
				 .last = r->last,
				 .outside = outside,
			 }))
		return;
}

void losses__add_of(struct session *s, u32 pid, u16 family, enum loss_reason reason, u64 count, u64 first, u64 last,
		    u16 object)
{
	struct meta_loss r = {
		.event = session__event(s, ID_meta_loss),
		.first = first,
		.last = last,
		.count = count,
		.family = family,
		.object = object,
		.reason = reason,
	};

	r.event.pid = pid;
	r.event.tid = pid;
	add_up(s, &r);
	session__emit(s, &r, sizeof(r));
}

void losses__add(struct session *s, u16 family, enum loss_reason reason, u64 count, u64 first, u64 last, u16 object)
{
	losses__add_of(s, 0, family, reason, count, first, last, object);
}

/* Adds up what the CPUs counted, which is in per_cpu. */
static void add_counts(struct session *s, u32 family, u32 reason)
{
	struct losses *l = s->losses;
	u64 count = 0, first = ~0ULL, last = 0, *reported = &l->reported[family][reason];

	for (u32 i = 0; i < l->cpus; i++) {
		const struct loss_count *c = &l->per_cpu[i].reasons[reason];

		if (!c->count)
			continue;
		count += c->count;
		if (c->first < first)
			first = c->first;
		if (c->last > last)
			last = c->last;
	}
	if (count == *reported)
		return;
	/* the kernel's counter has the time of the very first loss; new losses occurred after the last poll */
	if (first < l->last_poll && *reported)
		first = l->last_poll;
	losses__add(s, family, reason, count - *reported, first, last, 0);
	*reported = count;
}

static void poll_family(struct session *s, u32 family)
{
	if (bpf_map_lookup_elem(bpf_map__fd(s->embedded.skel->maps.losses), &family, s->losses->per_cpu))
		return;
	for (u32 reason = 0; reason < LOSS_REASONS; reason++)
		add_counts(s, family, reason);
}

/* Counts programs that the kernel skipped because a program was already running on that CPU. */
static void poll_recursion(struct session *s, u64 now)
{
	struct losses *l = s->losses;
	u64 sums[FAMILY_MAX] = {};

	PROGRAMS_EACH(p, &s->embedded.probes)
		if (p->enabled)
			sums[p->family->id] += probes__misses(p);
	for (u32 i = 0; i < FAMILY_MAX; i++) {
		if (sums[i] <= l->recursion[i])
			continue;
		losses__add(s, (u16)i, LOSS_RECURSION, sums[i] - l->recursion[i], l->last_poll, now, 0);
		l->recursion[i] = sums[i];
	}
}

void losses__add_refused(struct session *s)
{
	struct meta_loss r = { .reason = LOSS_REFUSED };

	for (u32 i = 0; s->losses && i < FAMILY_MAX; i++) {
		r.family = (u16)i;
		r.count = trace_writer__refused(s->writer, i, &r.first, &r.last);
		if (r.count)
			add_up(s, &r);
	}
}

void session__each_loss(struct session *s, void (*fn)(const struct session_loss *l, void *arg), void *arg)
{
	const struct schema_family *family;

	for (u32 i = 0; s->losses && i < s->losses->n_sums; i++) {
		struct session_loss *l = &s->losses->sums[i];

		family = schema__family_by_id(s->embedded.schema, (u8)l->family);
		l->family_name = family ? family->name : NULL;
		l->recorded = l->family ? s->drain.recorded[l->family] : s->drain.traced;
		l->path = l->evicted_path ? l->evicted_path : objects__path(s->objects, l->object);
		l->path = l->path ? session__path(s, l->path) : NULL;
		fn(l, arg);
	}
}

void losses__poll(struct session *s)
{
	u64 now = session__now(s);

	for (u32 i = 0; i < s->embedded.schema->n_families; i++)
		poll_family(s, s->embedded.schema->families[i].id);
	poll_recursion(s, now);
	s->losses->last_poll = now;
}

void losses__store_path(struct losses *l, u16 object, const char *path)
{
	for (u32 i = 0; i < l->n_sums; i++)
		if (l->sums[i].object == object && !l->sums[i].evicted_path)
			l->sums[i].evicted_path = strdup(path);
}

u64 losses__total(const struct losses *l)
{
	return l ? l->total : 0;
}

void losses__sizes(const struct losses *l, table_size_fn *fn, void *arg)
{
	fn(&(struct table_size){ .name = "sums of losses",
				 .entries = l->n_sums,
				 .max = SUMS_MAX + COUNTERS,
				 .bytes = l->n_sums * sizeof(*l->sums) },
	   arg);
}
