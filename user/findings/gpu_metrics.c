// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What NVML shows of GPUs from outside: clocks that something limited, other processes on the same GPU, errors of links
 * and memory.
 */
#include <stdio.h>
#include <string.h>

#include "findings/about.h"
#include "model/gpu_metrics.h"
#include "output/text.h"
#include "probes/nvml/nvml.h"
#include "util/array.h"

/* A shorter time with lower clocks than this part, %, or clocks lower by less, are usual. */
#define LIMITED_PERCENT 5
#define CLOCK_PERCENT	95
/* A second limit is named from this part of the limited readings on, %. */
#define ALSO_PERCENT 10
/* GPUs wait while no program has work for them: what limits their clocks weighs less than that. */
#define CLOCK_WEIGHT 0.5
#define USERS_NAMED  3

static struct finding *add(const struct gpu_metrics_device *d, struct findings *out, enum finding_kind kind)
{
	struct finding *f = findings__add(out, kind);

	if (!f)
		return NULL;
	f->device = d->device;
	f->has_device = true;
	snprintf(f->report, sizeof(f->report), "gpu");
	return f;
}

/* Adds "power limit of 300 W, also temperature": what limited the clocks in most of the limited readings. */
static void add_limits(struct text_buffer *s, const struct gpu_metrics_device *d)
{
	const struct gpu_metric_sum *limit = &d->sums[NVML_METRIC_POWER_LIMIT];
	u64 also = 0;
	u32 most = 0;
	char text[160];

	for (u32 i = 0; i < ARRAY_LEN(d->by_limit); i++)
		most = d->by_limit[i] > d->by_limit[most] ? i : most;
	for (u32 i = 0; i < ARRAY_LEN(d->by_limit); i++)
		if (i != most && 100 * d->by_limit[i] >= ALSO_PERCENT * d->limited)
			also |= 1ULL << i;
	text__add(s, "%s", gpu_limits__text(text, sizeof(text), 1ULL << most));
	if (1U << most == NVML_LIMIT_POWER && limit->n)
		text__add(s, " of %.0f W", (double)limit->last / 1000);
	if (also)
		text__add(s, ", also %s", gpu_limits__text(text, sizeof(text), also));
}

static void add_clock(const struct finding_input *in, struct findings *out, const struct gpu_metrics_device *d)
{
	double highest = (double)d->sums[NVML_METRIC_SM_CLOCK_MAX].last, mean;
	char count[TEXT_NUMBER], of[TEXT_NUMBER];
	struct finding *f;
	struct text_buffer s;

	mean = d->limited ? d->limited_clock / (double)d->limited : 0;
	if (!d->readings || highest <= 0 || 100 * d->limited < LIMITED_PERCENT * d->readings ||
	    100 * mean > CLOCK_PERCENT * highest || !(f = add(d, out, FINDING_GPU_CLOCK)))
		return;
	f->wall_ns = query__duration(in->q);
	f->lost_ns = (u64)((double)f->wall_ns * (double)d->limited / (double)d->readings * (1 - mean / highest));
	f->weight = CLOCK_WEIGHT * (double)f->lost_ns;
	f->times = d->limited;
	s = (struct text_buffer){ .buf = f->detail, .size = sizeof(f->detail) };
	text__count(count, sizeof(count), (u64)(mean + 0.5));
	text__count(of, sizeof(of), (u64)highest);
	text__add(&s, "GPU %u ran at %s of %s MHz for %.0f%% of the time: ", d->device, count, of,
		  table__percent(d->limited, d->readings));
	add_limits(&s, d);
}

static void add_user_text(struct text_buffer *s, const struct gpu_metrics *m, const struct query *q, u32 pid,
			  const struct gpu_user *u)
{
	char buf[128];
	const char *name = gpu_metrics__process(m, q, pid, buf, sizeof(buf));

	text__add(s, "%u", names__number(q->names, pid));
	if (!*name && !u->memory.n)
		return;
	text__add(s, " (%s%s", name, *name && u->memory.n ? ", " : "");
	if (u->memory.n)
		text__add(s, "%s", TEXT_BYTES(u->memory.most));
	text__add(s, ")");
}

/* Adds a notice if processes that were not recorded used the GPU, or several that were. */
static void add_users(const struct finding_input *in, struct findings *out, const struct gpu_metrics *m,
		      const struct gpu_metrics_device *d)
{
	u32 users = 0, others = 0, n = 0;
	struct text_buffer s;
	struct finding *f;

	MAP_EACH_ENTRY(const struct gpu_user *u, const struct gpu_user_key *key, &m->users) {
		(void)u;
		if (key->device != d->device)
			continue;
		users++;
		others += gpu_metrics__is_other(in->q, key->pid);
	}
	if ((!others && users < 2) || !(f = add(d, out, FINDING_GPU_SHARED)))
		return;
	f->is_notice = true;
	s = (struct text_buffer){ .buf = f->detail, .size = sizeof(f->detail) };
	if (!others)
		text__add(&s, "GPU %u was used by %u processes: ", d->device, users);
	else if (others == 1)
		text__add(&s, "GPU %u was used by another process: ", d->device);
	else
		text__add(&s, "GPU %u was used by %u other processes: ", d->device, others);
	MAP_EACH_ENTRY(const struct gpu_user *u, const struct gpu_user_key *key, &m->users) {
		if (key->device != d->device || (others && !gpu_metrics__is_other(in->q, key->pid)) ||
		    n++ >= USERS_NAMED)
			continue;
		text__add(&s, "%s", n > 1 ? ", " : "");
		add_user_text(&s, m, in->q, key->pid, u);
	}
	if (n > USERS_NAMED)
		text__add(&s, " and %u more", n - USERS_NAMED);
}

static const u32 errors[] = {
	NVML_METRIC_ECC_UNCORRECTED,   NVML_METRIC_NVLINK_RECOVERIES, NVML_METRIC_NVLINK_REPLAYS,
	NVML_METRIC_NVLINK_CRC_ERRORS, NVML_METRIC_PCIE_REPLAYS,
};

static void add_errors(struct findings *out, const struct gpu_metrics_device *d)
{
	struct finding *f = NULL;
	struct text_buffer s = {};

	for (u32 i = 0; i < ARRAY_LEN(errors); i++) {
		const struct gpu_metric_sum *sum = &d->sums[errors[i]];
		bool is_first = !f;

		if (sum->last <= sum->first || (!f && !(f = add(d, out, FINDING_GPU_ERRORS))))
			continue;
		if (is_first) {
			f->is_notice = true;
			s = (struct text_buffer){ .buf = f->detail, .size = sizeof(f->detail) };
			text__add(&s, "GPU %u had ", d->device);
		}
		f->times += sum->last - sum->first;
		text__add(&s, "%s%s %s", is_first ? "" : ", ", TEXT_COUNT(sum->last - sum->first),
			  gpu_metric__of(errors[i])->title);
	}
}

int findings__find_gpu_metrics(const struct finding_input *in, struct findings *out)
{
	struct gpu_metrics m;
	int err;

	if (!trace__has(in->q->trace, "nvml_value"))
		return 0;
	err = gpu_metrics__read(&m, in->q);
	if (!err)
		MAP_EACH(const struct gpu_metrics_device *d, &m.devices) {
			add_clock(in, out, d);
			add_users(in, out, &m, d);
			add_errors(out, d);
		}
	gpu_metrics__free(&m);
	return err;
}

FINDINGS(gpu_metrics) = { .name = "gpu-metrics", .find = findings__find_gpu_metrics };
