// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The program's own words for what it was doing: the innermost range of the thread at that time. Of a finding only the
 * kind and its threads are known here, so time of the same kind in other code counts, too; a range is named only if it
 * has most of that time.
 */
#include "findings/ranges.h"

#include <errno.h>
#include <string.h>

#include "findings/findings.h"
#include "findings/group.h"
#include "model/nvtx.h"
#include "output/text.h"

#define RANGE_PERCENT 50 /* a range with less of the time is not named */
#define FINDINGS_READ 24

struct range_key {
	u32 finding, label;
};

struct ranges {
	struct finding *list;
	u32 n;
	const struct finding_input *in;
	struct nvtx nvtx;
	struct map sums; /* struct range_key -> u64 ns */
	u64 totals[FINDINGS_READ];
	u32 finding; /* of the interval that is being divided */
};

static bool is_of(const struct finding *f, const struct activity_interval *i, const struct profile_cell *cell)
{
	u32 kind = cell->decided ? cell->decided : cell->kind;

	return f->kind == kind && f->pid == i->thread.pid && (!f->tid || f->tid == i->thread.tid) && !f->has_device;
}

static int add_part(const struct nvtx_range *range, u64 from, u64 to, void *arg)
{
	struct ranges *r = arg;
	struct range_key key = { r->finding, range ? range->label : NVTX_OUTSIDE };
	u64 *sum = map__get(&r->sums, &key);

	if (!sum)
		return -ENOMEM;
	*sum += to - from;
	r->totals[r->finding] += to - from;
	return 0;
}

static int on_interval(const struct activity_interval *i, void *arg)
{
	struct ranges *r = arg;
	const struct nvtx_thread *t = nvtx__thread(&r->nvtx, i->thread);
	const struct profile_cell *cell = profile__find(r->in->profile, i);
	int err = 0;

	for (u32 k = 0; !err && cell && k < r->n; k++)
		if (is_of(&r->list[k], i, cell)) {
			r->finding = k;
			err = nvtx_thread__split(t, i->from, i->to, add_part, r);
		}
	return err;
}

static void name_ranges(struct ranges *r)
{
	char text[NVTX_LABEL + 64], label[NVTX_LABEL];

	MAP_EACH_ENTRY(const u64 *ns, const struct range_key *k, &r->sums) {
		double percent = table__percent(*ns, r->totals[k->finding]);

		if (k->label == NVTX_OUTSIDE || percent < RANGE_PERCENT)
			continue;
		nvtx__label(&r->nvtx, k->label, label, sizeof(label));
		if (percent > 99.5)
			snprintf(text, sizeof(text), "all of that in range %s", label);
		else
			snprintf(text, sizeof(text), "%.0f%% of that in range %s", percent, label);
		finding__add_detail(&r->list[k->finding], text);
	}
}

int ranges__add(struct finding *list, u32 n, const struct finding_input *in, struct activity *a)
{
	struct ranges r = { .list = list, .n = n < FINDINGS_READ ? n : FINDINGS_READ, .in = in };
	int err;

	if (!n || !schema__event(trace__schema(in->q->trace), "nvtx_range"))
		return 0;
	map__init(&r.sums, sizeof(struct range_key), sizeof(u64));
	err = nvtx__read(&r.nvtx, in->q);
	if (!err && r.nvtx.n)
		err = activity__read(a, on_interval, &r);
	if (!err)
		name_ranges(&r);
	map__free(&r.sums);
	nvtx__free(&r.nvtx);
	return err;
}
