// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report ranks: distributed training, the steps of each process, and for which of them the others wait. */
#include <stdio.h>
#include <string.h>

#include "findings/finding.h"
#include "model/ranks.h"
#include "output/text.h"
#include "report/samples/sampled.h"

static const struct column rank_columns[] = {
	{ "rank", "Rank", VALUE_U64, SHOW_PLAIN },
	{ "host", "Host", VALUE_TEXT, SHOW_PLAIN },
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "steps", "Steps", VALUE_U64, SHOW_COUNT },
	{ "median_ns", "Median", VALUE_DOUBLE, SHOW_NS },
	{ "max_ns", "Max", VALUE_U64, SHOW_NS },
	{ "data_ns", "Data", VALUE_U64, SHOW_NS },
	{ "forward_ns", "Forward", VALUE_U64, SHOW_NS },
	{ "backward_ns", "Backward", VALUE_U64, SHOW_NS },
	{ "optimizer_ns", "Optimizer", VALUE_U64, SHOW_NS },
	{ "other_ns", "Other", VALUE_U64, SHOW_NS },
	{ "collective_ns", "Collectives", VALUE_U64, SHOW_NS },
	{ "waited_ns", "of these waiting for others", VALUE_U64, SHOW_NS },
	{ "last_steps", "Steps it was last in", VALUE_U64, SHOW_COUNT },
	{ "delayed_ns", "All others waited for it", VALUE_U64, SHOW_NS },
};

/* The others wait for a rank if it delayed all of them by this part of its time. */
#define DELAY_PERCENT 5

static void fill(const struct ranks *r, const struct query *args, struct report_output *out)
{
	struct table *t = REPORT_TABLE(out, "ranks", "Ranks: the time of their steps, by phase", rank_columns);

	for (u32 i = 0; i < r->n; i++) {
		const struct rank *k = &r->list[i];
		const struct torch_loop *l = k->loop;
		const u64 *ns = l->phase_total_ns;

		table__add(t, k->has_number ? V_U64(k->task->rank) : V_NONE,
			   V_TEXT(k->has_number ? names__string(args->names, k->task->host) : ""), V_U64(l->pid),
			   V_TEXT(NAMES_TITLE(args->names, l->pid, 0)), V_U64(l->n), V_DBL((double)l->median_ns),
			   V_U64(l->steps[l->slowest].end - l->steps[l->slowest].start), V_U64(ns[PHASE_DATA]),
			   V_U64(ns[PHASE_FORWARD]), V_U64(ns[PHASE_BACKWARD]), V_U64(ns[PHASE_OPTIMIZER]),
			   V_U64(ns[PHASE_OTHER]), V_U64(ns[PHASE_COLLECTIVE]), V_U64(k->waited_ns),
			   V_U64(k->last_steps), V_U64(k->delayed_ns));
	}
}

/*
 * Writes " Its thread was longest in read_image (train.py:27)", by the samples and waits of the rank's thread in its
 * steps, if this is at least half of the time that its phase took more than that of the others.
 */
static int write_code(const struct query *args, const struct rank *k, u64 more_ns, struct text_buffer *text)
{
	const struct torch_loop *l = k->loop;
	struct query q = *args;
	struct finding_code code, most = { 0 };
	struct map codes; /* the function and its file -> u64 ns */
	struct sampled s;
	u64 most_ns = 0;
	int err;

	q.tids = (struct trace_ids){ &l->tid, 1 };
	q.from = l->steps[0].start;
	q.to = l->steps[l->n - 1].end;
	map__init(&codes, sizeof(code), sizeof(u64));
	err = sampled__read(&s, &q);
	for (u32 i = 0; !err && i < s.by_stack.n; i++) {
		const struct sampled_weight *w = map__value(&s.by_stack, i);
		u64 *ns;

		memset(&code, 0, sizeof(code));
		finding_code__fill(&code, s.stacks, *(const u32 *)map__key(&s.by_stack, i));
		/* the keys are compared as a whole */
		memset(code.native, 0, sizeof(code.native));
		code.line = 0;
		ns = *code.function ? map__get(&codes, &code) : NULL;
		if (!ns)
			continue;
		*ns += w->cpu_ns + w->off_ns;
		if (*ns > most_ns) {
			most_ns = *ns;
			most = code;
		}
	}
	if (!err && most_ns >= more_ns / 2 * l->n)
		finding_code__add(text, " Its thread was longest in ", &most);
	if (text->len)
		text__add(text, ".");
	sampled__free(&s);
	map__free(&codes);
	return err;
}

static void write_name(const struct query *args, const struct rank *k, char *buf, size_t size)
{
	char title[64];

	if (k->has_number)
		snprintf(buf, size, "Rank %u (%s on %s)", k->task->rank,
			 names__label(args->names, title, sizeof(title), k->loop->pid, 0),
			 names__string(args->names, k->task->host));
	else
		names__label(args->names, buf, size, k->loop->pid, 0);
}

static int add_straggler(const struct ranks *r, const struct query *args, struct report_output *out)
{
	const struct rank *k = ranks__straggler(r);
	char who[256], buf[512] = "";
	struct text_buffer text = { .buf = buf, .size = sizeof(buf) };
	u64 own_ns, others_ns, per_step;
	enum torch_phase phase;
	int err;

	if (!k || table__percent(k->delayed_ns, k->loop->total_ns) < DELAY_PERCENT) {
		if (r->compared)
			report_output__finding(
				out,
				"No rank makes the others wait for %u%% of its time or more and at least twice as long as any other rank does.",
				DELAY_PERCENT);
		return 0;
	}
	phase = ranks__slow_phase(r, k, &own_ns, &others_ns);
	per_step = k->delayed_ns / k->loop->n;
	err = write_code(args, k, own_ns - others_ns, &text);
	write_name(args, k, who, sizeof(who));
	report_output__finding(
		out,
		"%s makes the others wait %s a step on average, %.0f%% of its time; it was last in %llu of %llu steps. On average it needs %s of a step for %s, the others %s.%s",
		who, TEXT_NS(per_step), table__percent(k->delayed_ns, k->loop->total_ns), k->last_steps, k->compared,
		TEXT_NS(own_ns), torch_phase__name(phase), TEXT_NS(others_ns), buf);
	REPORT_FIGURES(out, FIGURE("pid", V_U64(k->loop->pid)),
		       FIGURE("rank", k->has_number ? V_U64(k->task->rank) : V_NONE),
		       FIGURE("delayed_ns", V_U64(k->delayed_ns)), FIGURE("last_steps", V_U64(k->last_steps)),
		       FIGURE("phase", V_TEXT(torch_phase__name(phase))), FIGURE("phase_ns", V_U64(own_ns)),
		       FIGURE("others_ns", V_U64(others_ns)));
	return err;
}

static void add_notes(const struct ranks *r, struct report_output *out)
{
	bool lacks_rank = false, lacks_collectives = false, has_collectives = false;

	for (u32 i = 0; i < r->n; i++) {
		lacks_rank |= !r->list[i].has_number;
		lacks_collectives |= !r->list[i].has_collectives;
		has_collectives |= r->list[i].has_collectives;
	}
	if (r->is_ambiguous)
		report_output__note(
			out,
			"Several processes have the same rank, and not all can be assigned to a job by their parent processes, so these are not compared.");
	if (lacks_collectives && has_collectives)
		report_output__note(out, "A rank without collectives is not compared with the others.");
	if (r->n && !has_collectives)
		report_output__note(
			out,
			"No thread waited on a CPU for a collective, so it is not known which rank the others wait for: with NCCL, the GPUs wait.");
	if (lacks_rank)
		report_output__note(
			out,
			"The rank of a process is known if its launcher set RANK and WORLD_SIZE, or MPI's or Slurm's variables, before it started.");
}

static int run(const struct query *args, struct report_output *out)
{
	struct torch_steps *steps;
	struct ranks *r = NULL;
	int err = torch_steps__new(&steps, args);

	if (!err)
		err = ranks__new(&r, steps, args->names);
	if (!err)
		err = add_straggler(r, args, out);
	if (!err) {
		fill(r, args, out);
		add_notes(r, out);
		if (!r->n)
			report__nothing(args, out,
					"No training step of a process with a rank or with collectives was recorded",
					"torch");
	}
	ranks__free(r);
	torch_steps__free(steps);
	return err;
}

REPORT(ranks) = {
	.name = "ranks",
	.doc = "distributed training with PyTorch: the steps of each rank, and which rank the others wait for",
	.kinds = "torch_collective,proc_rank",
	.run = run,
};
