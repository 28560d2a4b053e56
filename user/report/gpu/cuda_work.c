// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report/gpu/cuda_work.h"

#include <string.h>

#include "output/text.h"

struct place {
	u32 code, line;
};

static int on_work(const struct gpu_work *w, void *arg)
{
	struct cuda_work *c = arg;

	if (c->args->tids.n && (!w->launch || !trace_ids__have(&c->args->tids, w->launch->tid)))
		return 0;
	return c->fn(w, c->arg);
}

int cuda_work__read(struct cuda_work *c, const struct query *args, int (*fn)(const struct gpu_work *w, void *arg),
		    void *arg)
{
	static const struct gpu_listener listener = { .work = on_work };
	int err;

	*c = (struct cuda_work){ .args = args, .fn = fn, .arg = arg };
	map__init(&c->places, sizeof(struct place), sizeof(u32));
	err = stacks__load(&c->stacks, args->trace);
	if (!err)
		err = gpu_model__new(&c->model, args->trace, args->names);
	if (!err)
		err = gpu_model__read(c->model, args->from, args->to, &args->pids, &listener, c, &c->coverage);
	return err;
}

void cuda_work__free(struct cuda_work *c)
{
	gpu_model__free(c->model);
	stacks__free(c->stacks);
	map__free(&c->places);
}

bool cuda_work__is_whole(const struct gpu_work *w)
{
	return !w->open || w->host_time;
}

const char *cuda_work__name(const struct cuda_work *c, const char *mangled)
{
	return mangled ? gpu_model__demangled(c->model, mangled) : "[kernel without a name]";
}

const char *cuda_work__short_name(const struct cuda_work *c, const char *mangled)
{
	return mangled ? gpu_model__short_name(c->model, mangled) : "[kernel without a name]";
}

u32 cuda_work__line(struct cuda_work *c, const struct gpu_launch *l)
{
	u32 line = l && l->stack ? stacks__top_user(c->stacks, l->stack) : 0;
	const struct stack_frame *f = line ? stacks__frame(c->stacks, line) : NULL;
	struct place key;
	u32 *first;

	/* A stack without frames in the trace counts as none, and two unknown functions as different ones. */
	if (!f || !f->code)
		return f ? line : 0;
	key = (struct place){ f->code, f->line };
	first = map__get(&c->places, &key);
	if (first && !*first)
		*first = line;
	return first ? *first : line;
}

void cuda_work__add_unwatched_note(const struct gpu_coverage *t, struct report_output *out)
{
	if (t->unwatched)
		report_output__note(
			out,
			"%s call%s for kernels, copies, sets and graphs came while sonde's CUPTI library was inactive in their process (it polls once a second): their work on the device is not known.",
			TEXT_COUNT(t->unwatched), text__s(t->unwatched));
}

static void say_missing(const struct gpu_coverage *t, struct report_output *out)
{
	u64 all = t->kernels + t->copies + t->sets + t->graphs;

	if (t->host_time == all && all)
		report_output__note(
			out,
			"No process had sonde's CUPTI library: times are those of the calls on the host, not the device's. `sonde record -t +gpu -- COMMAND` has the device's.");
	else if (t->host_time)
		report_output__note(
			out,
			"%s of %s kernels, copies and sets are of processes without sonde's CUPTI library: for these, times are those of the calls, not the device's.",
			TEXT_COUNT(t->host_time), TEXT_COUNT(all));
	if (t->dropped || t->dropped_bytes)
		report_output__note(
			out,
			"%s record%s and %s of CUPTI's buffers were lost in the traced processes: counts are too small.",
			TEXT_COUNT(t->dropped), text__s(t->dropped), TEXT_BYTES(t->dropped_bytes));
	if (t->unjoined)
		report_output__note(
			out, "For %s of %s kernels, copies, sets and graphs the call that launched them is not known.",
			TEXT_COUNT(t->unjoined), TEXT_COUNT(all));
	if (t->unprobed)
		report_output__note(out, "%s launch%s that only CUPTI recorded %s no Python stack.",
				    TEXT_COUNT(t->unprobed), text__es(t->unprobed), t->unprobed == 1 ? "has" : "have");
	if (t->open)
		report_output__note(out, "%s had not ended when the trace ended: they are in no sum or average.",
				    TEXT_COUNT(t->open));
	if (t->unseen)
		report_output__note(
			out,
			"Of %s launch%s no kernel was seen: captured into a graph, still to run when the trace ended, or lost.",
			TEXT_COUNT(t->unseen), text__es(t->unseen));
	cuda_work__add_unwatched_note(t, out);
}

/* Adds the figures of the notes as a table for CSV and JSON. */
static void tabulate(const struct gpu_coverage *t, struct report_output *out)
{
	static const struct column columns[] = {
		{ "kernels", "Kernels", VALUE_U64, SHOW_COUNT },
		{ "copies", "Copies", VALUE_U64, SHOW_COUNT },
		{ "sets", "Sets", VALUE_U64, SHOW_COUNT },
		{ "graphs", "Graphs", VALUE_U64, SHOW_COUNT },
		{ "joined", "Joined", VALUE_U64, SHOW_COUNT },
		{ "unjoined", "Not joined", VALUE_U64, SHOW_COUNT },
		{ "unprobed", "Known from CUPTI alone", VALUE_U64, SHOW_COUNT },
		{ "only_by_calls", "Known from calls alone", VALUE_U64, SHOW_COUNT },
		{ "open", "Not ended", VALUE_U64, SHOW_COUNT },
		{ "unseen", "No device record", VALUE_U64, SHOW_COUNT },
		{ "unwatched", "While CUPTI was off", VALUE_U64, SHOW_COUNT },
		{ "dropped_records", "Dropped", VALUE_U64, SHOW_COUNT },
		{ "dropped_bytes", "Dropped bytes", VALUE_U64, SHOW_BYTES },
		{ "clock_error_ns", "Clock error", VALUE_U64, SHOW_NS },
	};
	struct table *table = REPORT_MACHINE_TABLE(out, "coverage", "What the figures cover", columns);

	table__add(table, V_U64(t->kernels), V_U64(t->copies), V_U64(t->sets), V_U64(t->graphs), V_U64(t->joined),
		   V_U64(t->unjoined), V_U64(t->unprobed), V_U64(t->host_time), V_U64(t->open), V_U64(t->unseen),
		   V_U64(t->unwatched), V_U64(t->dropped), V_U64(t->dropped_bytes), V_U64(t->clock_error));
}

void cuda_work__add_notes(const struct cuda_work *c, struct report_output *out, const char *nothing)
{
	const struct gpu_coverage *t = &c->coverage;

	if (nothing)
		report__nothing(c->args, out, nothing, "gpu");
	say_missing(t, out);
	tabulate(t, out);
	if (t->clock_error)
		report_output__note(out, "Device times are within %s of the host's clock.", TEXT_NS(t->clock_error));
	if (c->pool.approximate)
		report_output__note(out, "Medians of groups beyond %u are within 0.4%%.", STATS_EXACT);
}
