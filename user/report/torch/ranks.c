// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report ranks: distributed training, the steps of each process, and for which of them the others wait. */
#include <stdio.h>
#include <string.h>

#include "findings/findings.h"
#include "model/ranks.h"
#include "output/text.h"
#include "report/report.h"

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
	{ "waited_ns", "Waited for others", VALUE_U64, SHOW_NS },
	{ "collectives", "Compared", VALUE_U64, SHOW_COUNT },
	{ "last_collectives", "Last in", VALUE_U64, SHOW_COUNT },
	{ "delayed_ns", "All others waited for it", VALUE_U64, SHOW_NS },
};

static const struct column communicator_columns[] = {
	{ "hash", "Hash", VALUE_U64, SHOW_HEX },
	{ "library", "Library", VALUE_TEXT, SHOW_PLAIN },
	{ "size", "Ranks", VALUE_S64, SHOW_PLAIN },
	{ "recorded", "Recorded", VALUE_U64, SHOW_PLAIN },
	{ "collectives", "Compared", VALUE_U64, SHOW_COUNT },
	{ "skew_ns", "Avg skew", VALUE_DOUBLE, SHOW_NS },
	{ "by", "Arrival of", VALUE_TEXT, SHOW_PLAIN },
	{ "stuck_ns", "Waits at the end", VALUE_U64, SHOW_NS },
	{ "absent", "Ranks absent", VALUE_U64, SHOW_COUNT },
};

/* A wait for a rank, or a rank's for others, counts if it is this part of its time, %. */
#define DELAY_PERCENT 5

static void fill(const struct ranks *r, const struct query *args, struct report_output *out)
{
	struct table *t = REPORT_TABLE(out, "ranks", "Ranks: the time of their steps, by phase", rank_columns);

	for (u32 i = 0; i < r->n; i++) {
		const struct rank *k = &r->list[i];
		const struct torch_loop *l = k->loop;
		struct value phases[PHASES];

		for (u32 p = 0; p < PHASES; p++)
			phases[p] = l ? V_U64(l->phase_total_ns[p]) : V_NONE;
		table__add(t, k->number >= 0 ? V_U64((u64)k->number) : V_NONE,
			   V_TEXT(k->has_number ? names__string(args->names, k->task->host) : ""), V_U64(k->pid),
			   V_TEXT(NAMES_TITLE(args->names, k->pid, 0)), l ? V_U64(l->n) : V_NONE,
			   l ? V_DBL((double)l->median_ns) : V_NONE,
			   l ? V_U64(l->steps[l->slowest].end - l->steps[l->slowest].start) : V_NONE,
			   phases[PHASE_DATA], phases[PHASE_FORWARD], phases[PHASE_BACKWARD], phases[PHASE_OPTIMIZER],
			   phases[PHASE_OTHER], phases[PHASE_COLLECTIVE], V_U64(k->waited_ns), V_U64(k->compared),
			   V_U64(k->last), V_U64(k->delayed_ns));
	}
}

static void fill_communicators(const struct ranks *r, struct report_output *out)
{
	struct table *t = REPORT_TABLE(out, "communicators", "Communicators: how far apart ranks come to a collective",
				       communicator_columns);

	t->limit = 30;
	for (const struct communicator *c = r->communicators; c < r->communicators + r->n_communicators; c++) {
		const struct collective_rank *first = c->ranks;
		bool has_operations = false;

		for (u32 i = 0; i < c->n; i++)
			has_operations |= c->ranks[i].n;
		if (!has_operations)
			continue;
		table__add(t, V_U64_IF(first->hash), V_TEXT(first->is_nccl ? "NCCL" : "c10d"),
			   first->size ? V_S64(first->size) : V_NONE, V_U64(c->n), V_U64(c->compared),
			   c->compared ? V_DBL((double)c->skew_ns / (double)c->compared) : V_NONE,
			   V_TEXT(c->has_device	 ? "kernels" :
				  first->is_nccl ? "calls" :
						   "threads"),
			   c->stuck >= 0 ? V_U64(c->stuck_ns) : V_NONE, c->stuck >= 0 ? V_U64(c->absent) : V_NONE);
	}
}

static void write_name(const struct query *args, const struct rank *k, char *buf, size_t size)
{
	char title[64];
	struct text_buffer s = { .buf = buf, .size = size };

	names__label(args->names, title, sizeof(title), k->pid, 0);
	if (k->number < 0)
		text__add(&s, "%s", title);
	else
		text__add(&s, "Rank %lld (%s", (long long)k->number, title);
	if (k->has_number)
		text__add(&s, " on %s", names__string(args->names, k->task->host));
	if (k->number >= 0)
		text__add(&s, ")");
}

/* The figures of a finding about a slow rank, or about one that never came */
static void add_figures(const struct ranks *r, const struct rank *k, struct report_output *out)
{
	const struct communicator *c = ranks__stuck(r);
	bool is_absent = c && ranks__absent(r, c) == k;
	u64 own_ns = 0, others_ns = 0;
	enum torch_phase phase = k->loop ? ranks__slow_phase(r, k, &own_ns, &others_ns) : PHASE_OTHER;

	REPORT_FIGURES(out, FIGURE("pid", V_U64(k->pid)),
		       FIGURE("rank", k->number >= 0 ? V_U64((u64)k->number) : V_NONE),
		       FIGURE("delayed_ns", V_U64(k->delayed_ns)), FIGURE("last_collectives", V_U64(k->last)),
		       FIGURE("phase", k->loop ? V_TEXT(torch_phase__name(phase)) : V_NONE),
		       FIGURE("phase_ns", k->loop ? V_U64(own_ns) : V_NONE),
		       FIGURE("others_ns", k->loop ? V_U64(others_ns) : V_NONE),
		       FIGURE("collective", is_absent ? V_U64((u64)c->stuck + 1) : V_NONE),
		       FIGURE("absent", is_absent ? V_U64(c->absent) : V_NONE),
		       FIGURE("stuck_ns", is_absent ? V_U64(c->stuck_ns) : V_NONE));
}

/* Adds the summary's findings about ranks for which the others wait. Returns their number. */
static u32 add_slow(const struct ranks *r, const struct findings *findings, const struct query *args,
		    struct report_output *out)
{
	const struct finding *f;
	const struct rank *k;
	u32 n = 0;

	for (u32 i = 0; (f = findings__ranked(findings, i)) != NULL; i++) {
		if (f->kind != FINDING_STRAGGLER)
			continue;
		finding__report(f, args, false, out);
		k = ranks__of(r, f->pid);
		if (k)
			add_figures(r, k, out);
		n++;
	}
	return n;
}

/* The ranks wait for one that was not recorded. */
static void add_stuck(const struct communicator *c, struct report_output *out)
{
	char what[128];

	communicator__name_operation(c, c->stuck, what, sizeof(what));
	report_output__finding(
		out,
		"%u recorded rank%s of %d had waited for %s in %s when the trace ended, for a rank that was not recorded.",
		c->n, text__s(c->n), c->ranks->size, TEXT_NS(c->stuck_ns), what);
	REPORT_FIGURES(out, FIGURE("collective", V_U64((u64)c->stuck + 1)), FIGURE("absent", V_U64(c->absent)),
		       FIGURE("stuck_ns", V_U64(c->stuck_ns)));
}

/* "ncclAllReduce of 4.00 MiB in rank 0" */
static void add_call(struct text_buffer *s, const struct collective_rank *k, const struct collective *one)
{
	text__add(s, "%s of %s in rank %d", one->function, TEXT_BYTES(one->bytes), k->rank);
}

/* Ranks of a communicator call different collectives. */
static void add_mismatch(const struct communicator *c, struct report_output *out)
{
	const struct collective_rank *first = NULL;
	char calls[256] = "";
	struct text_buffer text = { .buf = calls, .size = sizeof(calls) };

	for (const struct collective_rank *k = c->ranks; k < c->ranks + c->n; k++) {
		const struct collective *one = collective_rank__operation(k, c->mismatch), *other;

		if (!one || !one->function)
			continue;
		if (!first) {
			first = k;
			add_call(&text, k, one);
			continue;
		}
		other = collective_rank__operation(first, c->mismatch);
		if (other->bytes == one->bytes && !strcmp(other->function, one->function))
			continue;
		text__add(&text, ", and ");
		add_call(&text, k, one);
		break;
	}
	report_output__finding(out, "Ranks of communicator 0x%llx call different collectives: collective %lld is %s.",
			       (unsigned long long)c->ranks->hash, (long long)c->mismatch + 1, calls);
}

static void add_mismatches(const struct ranks *r, struct report_output *out)
{
	for (u32 i = 0; i < r->n_communicators; i++)
		if (r->communicators[i].mismatch >= 0)
			add_mismatch(&r->communicators[i], out);
}

/* What one rank's kernels alone show */
static void add_estimates(const struct ranks *r, const struct query *args, struct report_output *out)
{
	char who[256];

	for (u32 i = 0; i < r->n; i++) {
		const struct rank *k = &r->list[i];

		if (!k->is_estimated || table__percent(k->waited_ns, k->total_ns) < DELAY_PERCENT)
			continue;
		write_name(args, k, who, sizeof(who));
		report_output__finding(
			out,
			"%s waited for another rank for %s, %.0f%% of its time: so much longer than the fastest one did its kernels of NCCL run. No other rank of the communicator was recorded.",
			who, TEXT_NS(k->waited_ns), table__percent(k->waited_ns, k->total_ns));
	}
}

/* A rank that was late once, which is not slow. Returns whether there is one. */
static bool add_late(const struct ranks *r, const struct query *args, struct report_output *out)
{
	u64 others_ns;
	const struct rank *k = r->in_groups ? NULL : ranks__late(r, &others_ns);
	char who[256];

	if (!k || table__percent(k->longest_ns, k->total_ns) < DELAY_PERCENT)
		return false;
	write_name(args, k, who, sizeof(who));
	report_output__finding(
		out,
		"%s made all others wait %s at collective %lld, %.0f%% of its time; no other rank ever made them wait longer than %s.",
		who, TEXT_NS(k->longest_ns), (long long)k->longest_at + 1, table__percent(k->longest_ns, k->total_ns),
		TEXT_NS(others_ns));
	REPORT_FIGURES(out, FIGURE("pid", V_U64(k->pid)),
		       FIGURE("rank", k->number >= 0 ? V_U64((u64)k->number) : V_NONE),
		       FIGURE("collective", V_U64((u64)k->longest_at + 1)), FIGURE("late_ns", V_U64(k->longest_ns)));
	return true;
}

/* A rank that calls NCCL after all others: whether their GPUs wait for it was not recorded. */
static void add_late_calls(const struct ranks *r, const struct query *args, struct report_output *out)
{
	const struct rank *k = ranks__straggler(r);
	char who[256];

	if (!k || table__percent(k->delayed_ns, k->total_ns) < DELAY_PERCENT)
		return;
	write_name(args, k, who, sizeof(who));
	report_output__finding(out, "%s is the last to call %llu of %llu collectives, by %s on average.", who, k->last,
			       k->compared, TEXT_NS(k->delayed_ns / k->last));
}

static void add_findings(const struct ranks *r, const struct findings *findings, const struct query *args,
			 struct report_output *out)
{
	const struct communicator *stuck = ranks__stuck(r);
	u32 slow = add_slow(r, findings, args, out);

	if (stuck && !stuck->absent)
		add_stuck(stuck, out);
	add_mismatches(r, out);
	add_estimates(r, args, out);
	if (slow || stuck)
		return;
	if (r->lacks_kernels)
		add_late_calls(r, args, out);
	else if (add_late(r, args, out) || !r->compared)
		return;
	else if (r->in_groups)
		report_output__finding(
			out,
			"Whether a rank makes the others wait is not known, as collectives of several process groups can't be distinguished.");
	else
		report_output__finding(out,
				       "No rank makes the others wait beyond chance for a tenth of the time or more.");
}

static void add_notes(const struct ranks *r, const struct query *args, struct report_output *out)
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
			"No thread waited on a CPU for a collective, and no call of NCCL was recorded, so it is not known which rank the others wait for.");
	if (r->in_groups)
		report_output__note(
			out,
			"Processes have several process groups of gloo. Which of them a collective belongs to was not recorded, so collectives are matched by their times alone. For %llu of %llu none of another rank was found, and the last four columns of the ranks are estimates.",
			r->unmatched, r->in_groups);
	if (r->lacks_kernels)
		report_output__note(
			out,
			"NCCL's kernels were not recorded (-t +gpu): ranks are compared by their calls on the host, which need not wait when they are early.");
	if (lacks_rank && !query__has_family(args, "proc"))
		report_output__note(
			out,
			"The numbers of the ranks were not recorded: family proc has them (record with -t +torch, which adds to the default families).");
	else if (lacks_rank)
		report_output__note(
			out,
			"The rank of a process is known if its launcher set RANK and WORLD_SIZE, or MPI's or Slurm's variables, before it started.");
}

static int run(const struct query *args, struct report_output *out)
{
	struct findings *findings = NULL;
	struct ranks *r = NULL;
	int err = findings__read(&findings, args, 0);

	if (!err)
		err = ranks__new(&r, args, findings__input(findings)->torch);
	if (!err) {
		add_findings(r, findings, args, out);
		fill(r, args, out);
		fill_communicators(r, out);
		add_notes(r, args, out);
		if (!r->n)
			report__nothing(
				args, out,
				"No collective operation, and no training step of a process with a rank, was recorded",
				"torch");
	}
	ranks__free(r);
	findings__free(findings);
	return err;
}

REPORT(ranks) = {
	.name = "ranks",
	.doc = "distributed training: the steps of each rank, which rank the others wait for, and which never came",
	.kinds = "torch_collective,proc_rank,nccl_collective",
	.run = run,
};
