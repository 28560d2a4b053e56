// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report/nvtx/parts.h"

#include <errno.h>
#include <string.h>

#include "model/activity.h"
#include "model/nvtx.h"
#include "model/stacks.h"
#include "output/text.h"

/* What a thread did in a range: a call or wait, or a function. */
struct part_key {
	u32 label; /* NVTX_OUTSIDE: in no range */
	u32 what; /* `reason` of an interval, or a frame */
};

struct parts {
	enum nvtx_parts of;
	const struct query *args;
	struct nvtx nvtx;
	struct activity *activity;
	struct stacks *stacks;
	struct map sums; /* struct part_key -> u64 ns */
	struct map functions; /* u32 code -> u32 frame */
	const struct activity_interval *interval; /* that is being divided */
	u64 total, outside;
};

static const struct column columns[] = {
	{ "range", "Innermost range", VALUE_TEXT, SHOW_PLAIN },
	{ "time_percent", "Time (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "total_ns", "Time", VALUE_U64, SHOW_NS },
	{ "name", "What", VALUE_TEXT, SHOW_PLAIN },
};

static bool is_syscall(const struct activity_interval *i)
{
	return i->cause >= ACTIVITY_SLEEP && i->cause <= ACTIVITY_SYSCALL;
}

static bool is_of(enum nvtx_parts parts, const struct activity_interval *i)
{
	switch (parts) {
	case NVTX_PARTS_GIL:
		return i->cause == ACTIVITY_GIL;
	case NVTX_PARTS_OFF_CPU:
		return i->state == ACTIVITY_BLOCKED || i->state == ACTIVITY_RUNNABLE;
	case NVTX_PARTS_LOCK:
		return i->cause == ACTIVITY_LOCK || i->cause == ACTIVITY_CONDITION;
	case NVTX_PARTS_CUDA:
		return i->cause == ACTIVITY_CUDA || i->cause == ACTIVITY_CUDA_SYNC;
	case NVTX_PARTS_NCCL:
		return i->cause == ACTIVITY_NCCL;
	case NVTX_PARTS_SYSCALL:
		return is_syscall(i);
	default:
		return false;
	}
}

static int add(struct parts *p, const struct nvtx_range *range, u32 what, u64 ns)
{
	struct part_key key = { range ? range->label : NVTX_OUTSIDE, what };
	u64 *sum = map__get(&p->sums, &key);

	if (!sum)
		return -ENOMEM;
	*sum += ns;
	p->total += ns;
	p->outside += range ? 0 : ns;
	return 0;
}

static int add_part(const struct nvtx_range *range, u64 from, u64 to, void *arg)
{
	struct parts *p = arg;

	return add(p, range, p->interval->reason, to - from);
}

static int on_interval(const struct activity_interval *i, void *arg)
{
	struct parts *p = arg;

	p->interval = i;
	return is_of(p->of, i) ? nvtx_thread__split(nvtx__thread(&p->nvtx, i->thread), i->from, i->to, add_part, p) : 0;
}

/* The frame that stands for the user's innermost function in the stack: all frames of a function count as one. */
static u32 function_of(struct parts *p, u32 stack)
{
	u32 frame = stacks__top_user(p->stacks, stack), code = stacks__frame(p->stacks, frame)->code;
	u32 *first = code ? map__get(&p->functions, &code) : NULL;

	if (first && !*first)
		*first = frame;
	return first ? *first : frame;
}

static int on_samples(const struct rows *rows, void *arg)
{
	struct common_fields f = common_fields__of(rows__event(rows));
	FIELDS_OF(rows__event(rows), stack, period);
	struct parts *p = arg;
	int err = 0;

	ROWS_WHILE(!err, v, rows) {
		struct thread_key thread = { (u32)view__s64(&v, f.pid), (u32)view__s64(&v, f.tid) };
		const struct nvtx_thread *t = nvtx__thread(&p->nvtx, thread);
		u32 range = nvtx_thread__at(t, (u64)view__s64(&v, f.time));

		err = add(p, range == NVTX_OUTSIDE ? NULL : &t->ranges[range],
			  function_of(p, (u32)view__s64(&v, stack)), (u64)view__s64(&v, period));
	}
	return err;
}

static int read_all(struct parts *p)
{
	int err = nvtx__read(&p->nvtx, p->args);

	if (err || !p->nvtx.n)
		return err;
	if (p->of == NVTX_PARTS_PYTHON)
		return stacks__load(&p->stacks, p->args->trace) ?:
								  query__read_kind(p->args, "sample_cpu", on_samples, p);
	return activity__new(&p->activity, p->args, ACTIVITY_IN_CALLS) ?: activity__read(p->activity, on_interval, p);
}

static const char *name_of(struct parts *p, u32 what, char *buf, size_t size)
{
	if (!p->stacks)
		return activity__name(p->activity, what);
	return what ? stacks__function(p->stacks, what, buf, size) : "(no Python or user code)";
}

static void fill(struct parts *p, struct table *t)
{
	char label[NVTX_LABEL], name[512];

	MAP_EACH_ENTRY(const u64 *ns, const struct part_key *k, &p->sums)
		table__add(t,
			   V_TEXT(k->label == NVTX_OUTSIDE ? "(in no range)" :
							     nvtx__label(&p->nvtx, k->label, label, sizeof(label))),
			   V_DBL(table__percent(*ns, p->total)), V_U64(*ns),
			   V_TEXT(name_of(p, k->what, name, sizeof(name))));
	table__sort(t, "total_ns");
}

int nvtx_parts__run(enum nvtx_parts parts, const struct query *args, struct report_output *out)
{
	struct parts p = { .of = parts, .args = args };
	struct table *t;
	int err;

	if (parts == NVTX_PARTS_KERNEL)
		return nvtx_kernels__run(args, out);
	t = REPORT_TABLE(out, "parts", "By the innermost range of NVTX", columns);
	map__init(&p.sums, sizeof(struct part_key), sizeof(u64));
	map__init(&p.functions, sizeof(u32), sizeof(u32));
	err = read_all(&p);
	if (!err) {
		t->limit = 30;
		fill(&p, t);
		if (p.total && p.outside < p.total)
			report_output__finding(out, "%.0f%% of %s was in ranges of NVTX.",
					       table__percent(p.total - p.outside, p.total), TEXT_NS(p.total));
		if (!p.nvtx.n)
			report__nothing(args, out, "No range of NVTX was recorded", "nvtx");
	}
	activity__free(p.activity);
	stacks__free(p.stacks);
	MAPS_FREE(&p.sums, &p.functions);
	nvtx__free(&p.nvtx);
	return err;
}
