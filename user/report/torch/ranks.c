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

/* The others wait for a rank if it delayed all of them by this part of its time. */
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

/*
 * Writes " Its thread was longest in read_image (train.py:27)", by the samples and waits of the rank's thread from
 * `from` to `to`, if this took at least least_ns.
 */
static int write_code(const struct query *args, const struct rank *k, u64 from, u64 to, u64 least_ns,
		      struct text_buffer *text)
{
	struct query q = *args;
	struct finding_code code, most = { 0 };
	struct map codes; /* the function and its file -> u64 ns */
	struct sampled s;
	u64 most_ns = 0;
	int err;

	q.tids = (struct trace_ids){ &k->tid, 1 };
	q.from = from;
	q.to = to;
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
	if (!err && most_ns >= least_ns)
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

/* " (ncclAllReduce, 4.00 MiB)" */
static void add_operation(struct text_buffer *s, const struct collective *one)
{
	if (one && one->function)
		text__add(s, " (%s, %s)", one->function, TEXT_BYTES(one->bytes));
}

/* Returns the operation as one of the ranks called it; NULL: none did. */
static const struct collective *operation_of(const struct communicator *c, s64 number)
{
	const struct collective *one = NULL;

	for (u32 i = 0; i < c->n && !one; i++)
		one = collective_rank__operation(&c->ranks[i], number);
	return one;
}

/* Returns when the rank's last operation ended; the begin of the selected time if it had none. */
static u64 last_end(const struct communicator *c, const struct rank *k, const struct query *args)
{
	u64 end = query__window(args).from;

	for (u32 i = 0; i < c->n; i++)
		if (c->ranks[i].pid == k->pid && c->ranks[i].n)
			end = c->ranks[i].list[c->ranks[i].n - 1].end;
	return end;
}

/* The ranks wait for one that has not come. */
static int add_stuck(const struct ranks *r, const struct query *args, struct report_output *out)
{
	const struct communicator *c = ranks__stuck(r);
	const struct rank *k = c ? ranks__absent(r, c) : NULL;
	char who[256] = "", what[128] = "", code[512] = "", waiters[48];
	struct text_buffer operation = { .buf = what, .size = sizeof(what) };
	struct text_buffer where = { .buf = code, .size = sizeof(code) };
	u64 from, to = query__window(args).to;
	u32 others = c ? c->n - c->absent : 0;
	int err = 0;

	if (!c)
		return 0;
	text__add(&operation, "collective %lld", (long long)c->stuck + 1);
	add_operation(&operation, operation_of(c, c->stuck));
	if (k) {
		write_name(args, k, who, sizeof(who));
		if (others == 1)
			snprintf(waiters, sizeof(waiters), "the other rank");
		else
			snprintf(waiters, sizeof(waiters), "the %u other ranks", others);
		from = last_end(c, k, args);
		err = write_code(args, k, from, to, (to - from) / 2, &where);
		report_output__finding(out, "%s%s had not come to %s when the trace ended: %s had waited for %s.%s",
				       who, c->absent > 1 ? " and others" : "", what, waiters, TEXT_NS(c->stuck_ns),
				       code);
	} else {
		report_output__finding(
			out,
			"%u recorded rank%s of %d had waited for %s in %s when the trace ended, for a rank that was not recorded.",
			c->n, text__s(c->n), c->ranks->size, TEXT_NS(c->stuck_ns), what);
	}
	REPORT_FIGURES(out, FIGURE("pid", k ? V_U64(k->pid) : V_NONE),
		       FIGURE("rank", k && k->number >= 0 ? V_U64((u64)k->number) : V_NONE),
		       FIGURE("collective", V_U64((u64)c->stuck + 1)), FIGURE("absent", V_U64(c->absent)),
		       FIGURE("stuck_ns", V_U64(c->stuck_ns)));
	return err;
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

static bool is_straggler(const struct rank *k)
{
	return k && table__percent(k->delayed_ns, k->total_ns) >= DELAY_PERCENT;
}

/* "40.000 ms a step on average, ", of a rank with steps */
static void write_delay(const struct rank *k, char *buf, size_t size)
{
	if (k->loop)
		snprintf(buf, size, "%s a step on average, ", TEXT_NS(k->delayed_ns / k->loop->n));
}

static int add_straggler(const struct ranks *r, const struct query *args, struct report_output *out)
{
	const struct rank *k = ranks__straggler(r);
	const struct torch_loop *l = is_straggler(k) ? k->loop : NULL;
	char who[256], code[512] = "", steps[192] = "", delay[64] = "";
	struct text_buffer where = { .buf = code, .size = sizeof(code) };
	u64 own_ns = 0, others_ns = 0;
	enum torch_phase phase = PHASE_OTHER;
	int err;

	if (!is_straggler(k))
		return 0;
	if (l) {
		phase = ranks__slow_phase(r, k, &own_ns, &others_ns);
		snprintf(steps, sizeof(steps), " On average it needs %s of a step for %s, the others %s.",
			 TEXT_NS(own_ns), torch_phase__name(phase), TEXT_NS(others_ns));
	}
	err = write_code(args, k, l ? l->steps[0].start : args->from, l ? l->steps[l->n - 1].end : args->to,
			 l ? (own_ns - others_ns) / 2 * l->n : k->delayed_ns / 2, &where);
	write_name(args, k, who, sizeof(who));
	write_delay(k, delay, sizeof(delay));
	report_output__finding(
		out, "%s makes the others wait %s%.0f%% of its time; it was last in %llu of %llu collectives.%s%s", who,
		delay, table__percent(k->delayed_ns, k->total_ns), k->last, k->compared, steps, code);
	REPORT_FIGURES(out, FIGURE("pid", V_U64(k->pid)),
		       FIGURE("rank", k->number >= 0 ? V_U64((u64)k->number) : V_NONE),
		       FIGURE("delayed_ns", V_U64(k->delayed_ns)), FIGURE("last_collectives", V_U64(k->last)),
		       FIGURE("phase", l ? V_TEXT(torch_phase__name(phase)) : V_NONE),
		       FIGURE("phase_ns", l ? V_U64(own_ns) : V_NONE),
		       FIGURE("others_ns", l ? V_U64(others_ns) : V_NONE));
	return err;
}

static int add_findings(const struct ranks *r, const struct query *args, struct report_output *out)
{
	int err = add_stuck(r, args, out);

	add_mismatches(r, out);
	if (!err)
		err = add_straggler(r, args, out);
	add_estimates(r, args, out);
	if (r->compared && !is_straggler(ranks__straggler(r)) && !ranks__stuck(r))
		report_output__finding(
			out,
			"No rank makes the others wait for %u%% of its time or more and at least twice as long as any other rank does.",
			DELAY_PERCENT);
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
			"No thread waited on a CPU for a collective, and no call of NCCL was recorded, so it is not known which rank the others wait for.");
	if (r->lacks_kernels)
		report_output__note(
			out,
			"NCCL's kernels were not recorded (-t +gpu): ranks are compared by their calls on the host, which need not wait when they are early.");
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
		err = ranks__new(&r, args, steps);
	if (!err)
		err = add_findings(r, args, out);
	if (!err) {
		fill(r, args, out);
		fill_communicators(r, out);
		add_notes(r, out);
		if (!r->n)
			report__nothing(
				args, out,
				"No collective operation, and no training step of a process with a rank, was recorded",
				"torch");
	}
	ranks__free(r);
	torch_steps__free(steps);
	return err;
}

REPORT(ranks) = {
	.name = "ranks",
	.doc = "distributed training: the steps of each rank, which rank the others wait for, and which never came",
	.kinds = "torch_collective,proc_rank,nccl_collective",
	.run = run,
};
