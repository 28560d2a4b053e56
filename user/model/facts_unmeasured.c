// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The times in which families sched and sample did not measure (record --cost-limit). */
#include "model/facts.h"

#include <errno.h>
#include <stdlib.h>

#include "model/facts_private.h"
#include "model/pauses.h"
#include "util/search.h"

/* Returns the part of the i-th of these times before a moment. */
static struct unmeasured_sum before_in(const struct trace_facts *f, u32 i, u64 time)
{
	const struct joint_pause *p = &f->unmeasured[i];
	u64 ns = trace_facts__inside(f, p->from, time < p->to ? time : p->to);

	return (struct unmeasured_sum){
		.of_any = ns,
		.mean = ns / p->live * p->paused + ns % p->live * p->paused / p->live,
	};
}

static struct unmeasured_sum add(struct unmeasured_sum a, struct unmeasured_sum b)
{
	return (struct unmeasured_sum){ a.of_any + b.of_any, a.mean + b.mean };
}

void facts_unmeasured__sum(struct trace_facts *f)
{
	struct unmeasured_sum sum = { 0 };

	for (u32 i = 0; f->unmeasured_before && i < f->n_unmeasured; i++) {
		f->unmeasured_before[i] = sum;
		sum = add(sum, before_in(f, i, f->unmeasured[i].to));
	}
}

static struct unmeasured_sum before(const struct trace_facts *f, u64 time)
{
	u32 i = (u32)SEARCH(f->n_unmeasured, k, f->unmeasured[k].from < time);

	return i ? add(f->unmeasured_before[i - 1], before_in(f, i - 1, time)) : (struct unmeasured_sum){ 0 };
}

u64 trace_facts__unmeasured(const struct trace_facts *f, u64 from, u64 to)
{
	return to > from ? before(f, to).mean - before(f, from).mean : 0;
}

bool trace_facts__is_unmeasured(const struct trace_facts *f, u64 from, u64 to)
{
	return to > from && before(f, to).of_any - before(f, from).of_any > (to - from) / 2;
}

int facts_unmeasured__settle(struct trace_facts *f, struct pauses *pauses)
{
	if (pauses__join(pauses, true))
		return -ENOMEM;
	f->unmeasured = pauses->joint;
	f->n_unmeasured = pauses->n_joint;
	f->unmeasured_joined = pauses->is_full;
	pauses->joint = NULL;
	f->unmeasured_before = calloc(f->n_unmeasured + 1, sizeof(*f->unmeasured_before));
	if (!f->unmeasured_before)
		return -ENOMEM;
	facts_unmeasured__sum(f);
	return 0;
}
