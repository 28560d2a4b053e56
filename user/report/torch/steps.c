// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report steps: training steps, what their time was, and why the longest took longer. */
#include <stdio.h>

#include "output/text.h"
#include "report/torch/recorded_steps.h"
#include "report/torch/steps.h"

static const struct column loop_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "tid", "TID", VALUE_U64, SHOW_NEVER },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "steps", "Steps", VALUE_U64, SHOW_COUNT },
	{ "median_ns", "Median", VALUE_DOUBLE, SHOW_NS },
	{ "max_ns", "Max", VALUE_U64, SHOW_NS },
	{ "data_percent", "Data %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "forward_percent", "Forward %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "backward_percent", "Backward %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "optimizer_percent", "Optimizer %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "collective_percent", "Collectives %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "other_percent", "Other %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "boundary", "A step ends with", VALUE_TEXT, SHOW_PLAIN },
};

static const struct column step_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "step", "Step", VALUE_U64, SHOW_PLAIN },
	{ "start_ns", "At (s)", VALUE_S64, SHOW_SECONDS },
	{ "step_ns", "Duration", VALUE_U64, SHOW_NS },
	{ "data_ns", "Data", VALUE_U64, SHOW_NS },
	{ "forward_ns", "Forward", VALUE_U64, SHOW_NS },
	{ "backward_ns", "Backward", VALUE_U64, SHOW_NS },
	{ "optimizer_ns", "Optimizer", VALUE_U64, SHOW_NS },
	{ "collective_ns", "Collectives", VALUE_U64, SHOW_NS },
	{ "other_ns", "Other", VALUE_U64, SHOW_NS },
	{ "calls", "Operators", VALUE_U64, SHOW_COUNT },
};

static void fill_loop(const struct torch_loop *l, const struct query *args, struct table *t)
{
	const struct torch_step *slowest = &l->steps[l->slowest];
	double percent[PHASES];

	for (u32 p = 0; p < PHASES; p++)
		percent[p] = table__percent(l->phase_total_ns[p], l->total_ns);
	table__add(t, V_U64(l->pid), V_U64(l->tid), V_TEXT(NAMES_TITLE(args->names, l->pid, 0)), V_U64(l->n),
		   V_DBL((double)l->median_ns), V_U64(slowest->end - slowest->start), V_DBL(percent[PHASE_DATA]),
		   V_DBL(percent[PHASE_FORWARD]), V_DBL(percent[PHASE_BACKWARD]), V_DBL(percent[PHASE_OPTIMIZER]),
		   V_DBL(percent[PHASE_COLLECTIVE]), V_DBL(percent[PHASE_OTHER]), V_TEXT(l->boundary));
}

static void fill_steps(const struct torch_loop *l, const struct query *args, struct table *t)
{
	for (u32 i = 0; i < l->n; i++) {
		const struct torch_step *s = &l->steps[i];

		table__add(t, V_U64(l->pid), V_U64(s->number), report__moment(args, s->start), V_U64(s->end - s->start),
			   V_U64(s->phase_ns[PHASE_DATA]), V_U64(s->phase_ns[PHASE_FORWARD]),
			   V_U64(s->phase_ns[PHASE_BACKWARD]), V_U64(s->phase_ns[PHASE_OPTIMIZER]),
			   V_U64(s->phase_ns[PHASE_COLLECTIVE]), V_U64(s->phase_ns[PHASE_OTHER]), V_U64(s->calls));
	}
}

static void add_shares(const struct torch_loop *l, const struct query *args, struct report_output *out)
{
	char who[64], collectives[64] = "";
	const u64 *ns = l->phase_total_ns;

	if (ns[PHASE_COLLECTIVE])
		snprintf(collectives, sizeof(collectives), ", %.0f%% collectives",
			 table__percent(ns[PHASE_COLLECTIVE], l->total_ns));

	report_output__finding(
		out,
		"%s: %s step%s of %s (median): %.0f%% data loading, %.0f%% forward pass, %.0f%% backward pass, %.0f%% optimizer%s, %.0f%% other code.",
		names__label(args->names, who, sizeof(who), l->pid, 0), TEXT_COUNT(l->n), text__s(l->n),
		TEXT_NS(l->median_ns), table__percent(ns[PHASE_DATA], l->total_ns),
		table__percent(ns[PHASE_FORWARD], l->total_ns), table__percent(ns[PHASE_BACKWARD], l->total_ns),
		table__percent(ns[PHASE_OPTIMIZER], l->total_ns), collectives,
		table__percent(ns[PHASE_OTHER], l->total_ns));
	REPORT_FIGURES(out, FIGURE("pid", V_U64(l->pid)), FIGURE("steps", V_U64(l->n)),
		       FIGURE("median_ns", V_U64(l->median_ns)),
		       FIGURE("data_percent", V_DBL(table__percent(ns[PHASE_DATA], l->total_ns))));
}

/* Of fewer steps the median says little. */
#define STEPS_MIN 4

static void add_slow(const struct torch_steps *steps, const struct torch_loop *l, const struct query *args,
		     struct report_output *out)
{
	const struct torch_step *s = &l->steps[l->slowest];
	u64 took = s->end - s->start, more, part_more;
	enum torch_phase phase = torch_loop__slow_phase(l, &more);
	const struct torch_part *part = torch_loop__slow_part(l, &part_more);
	char which[256] = "";

	if (l->n < STEPS_MIN || !torch_loop__is_slow(l, l->slowest))
		return;
	/* the operator says more than its phase if it explains most of the time */
	if (part && phase != PHASE_DATA && part_more > more / 2)
		snprintf(which, sizeof(which), ", %s more in %s itself", TEXT_NS(part_more),
			 torch__name(steps->torch, part->name));
	report_output__finding(out, "The longest step, %llu at %s s, took %s, %.1f times the median: %s more in %s%s.",
			       s->number, TEXT_SECONDS(s->start, args->start, 3), TEXT_NS(took),
			       (double)took / (double)(l->median_ns ? l->median_ns : 1), TEXT_NS(more),
			       torch_phase__name(phase), which);
	REPORT_FIGURES(out, FIGURE("pid", V_U64(l->pid)), FIGURE("step", V_U64(s->number)),
		       FIGURE("step_ns", V_U64(took)), FIGURE("more_ns", V_U64(more)),
		       FIGURE("phase", V_TEXT(torch_phase__name(phase))));
}

void steps__add_findings(const struct torch_steps *s, const struct query *args, struct report_output *out, u32 max)
{
	u32 first = out->n_findings;

	for (u32 i = 0; i < s->n && i < 3 && out->n_findings - first < max; i++) {
		add_shares(&s->loops[i], args, out);
		if (out->n_findings - first < max)
			add_slow(s, &s->loops[i], args, out);
	}
}

static void fill(const struct torch_steps *s, const struct query *args, struct report_output *out)
{
	struct table *loops = REPORT_TABLE(out, "loops", "Loops, and their time by phase", loop_columns);
	struct table *steps = REPORT_TABLE(out, "steps", "Steps, the longest first", step_columns);
	bool has_derived = false;

	steps->limit = 20;
	for (u32 i = 0; i < s->n; i++) {
		fill_loop(&s->loops[i], args, loops);
		fill_steps(&s->loops[i], args, steps);
		has_derived |= !s->loops[i].is_marked;
	}
	table__sort(steps, "step_ns");
	steps__add_findings(s, args, out, 6);
	if (s->dropped)
		report_output__note(
			out, "%s phases were not read, as the trace has too many: `--time` selects a part of it.",
			TEXT_COUNT(s->dropped));
	if (s->ignored)
		report_output__note(
			out,
			"%s further threads have ranges that may be steps, and were ignored: `--pid` selects a process.",
			TEXT_COUNT(s->ignored));
	if (has_derived)
		report_output__note(
			out,
			"The steps before the first and after the last of these ends are not complete, and not counted.");
}

static int run(const struct query *args, struct report_output *out)
{
	struct torch_rests rests = {};
	struct torch_steps *s;
	int err = torch_steps__new(&s, args) ?: torch_rests__read(&rests, args);

	if (!err)
		fill(s, args, out);
	if (!err && s->n)
		recorded_steps__add(&rests, args, out);
	if (!err && !s->n)
		report__nothing(
			args, out,
			"No training step was recorded: a step takes two calls of an optimizer's step(), or two requests to a data loader",
			"torch");
	torch_rests__free(&rests);
	torch_steps__free(s);
	return err;
}

REPORT(steps) = {
	.name = "steps",
	.doc = "training steps of PyTorch: time by forward and backward pass, optimizer, data loading; why one was slow",
	.kinds = "torch_range",
	.run = run,
};
