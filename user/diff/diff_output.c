// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The sentences, tables and notes of a comparison. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff/diff_private.h"
#include "output/text.h"

#define SENTENCES_MAX 8
#define SCORE_LEAST   1e6 /* ns per second: a smaller difference is only a row of a table */

struct listed {
	const struct diff_key *key;
	const struct diff_entry *e;
	u32 number;
};

static const char *const section_keys[] = {
	[DIFF_FUNCTIONS] = "function",
	[DIFF_CAUSES] = "cause",
	[DIFF_CALLS] = "call",
	[DIFF_FINDINGS] = "finding",
};

/* Order: what became slower, then what became faster, each by its size; then what did not change, by its time. */
static int by_score(const void *a, const void *b)
{
	const struct diff_entry *x = ((const struct listed *)a)->e, *y = ((const struct listed *)b)->e;
	double p = fmax(x->rate.side[0], x->rate.side[1]), q = fmax(y->rate.side[0], y->rate.side[1]);

	if ((x->score > 0) != (y->score > 0))
		return x->score > 0 ? -1 : 1;
	if ((x->score != 0) != (y->score != 0))
		return x->score != 0 ? -1 : 1;
	if (fabs(x->score) != fabs(y->score))
		return fabs(x->score) > fabs(y->score) ? -1 : 1;
	if (p != q)
		return p > q ? -1 : 1;
	return ((const struct listed *)a)->number < ((const struct listed *)b)->number ? -1 : 1;
}

/* Lists all entries that are compared; malloc'ed, NULL: no memory. */
static struct listed *list_all(const struct diff *d, u32 *n)
{
	struct listed *list = calloc((size_t)d->entries.n + 1, sizeof(*list));

	*n = 0;
	for (u32 i = 0; list && i < d->entries.n; i++) {
		const struct diff_entry *e = map__value(&d->entries, i);

		if (e->is_compared)
			list[(*n)++] = (struct listed){ map__key(&d->entries, i), e, i };
	}
	if (list)
		qsort(list, *n, sizeof(*list), by_score);
	return list;
}

/* Does x describe the same time as y, but more exactly? */
static bool is_covered_by(const struct listed *y, const struct listed *x)
{
	if (x->key->process != y->key->process || (x->e->score > 0) != (y->e->score > 0) || x == y)
		return false;
	switch (y->key->section) {
	case DIFF_CAUSES:
		if (x->key->section == DIFF_FINDINGS && x->key->kind == y->key->kind)
			return true;
		/* fallthrough */
	case DIFF_FINDINGS:
		return y->key->kind == FINDING_COMPUTE && x->key->section == DIFF_FUNCTIONS;
	default:
		return false;
	}
}

/* Does the entry get a sentence? Not if its change is small, or if another entry describes the same time. */
static bool gets_sentence(const struct listed *list, u32 n, u32 i)
{
	if (fabs(list[i].e->score) < SCORE_LEAST)
		return false;
	for (u32 k = 0; k < n; k++)
		if (fabs(list[k].e->score) >= SCORE_LEAST && is_covered_by(&list[i], &list[k]))
			return false;
	return true;
}

static const char *change_of(const struct diff_entry *e)
{
	return e->score > 0 ? "slower" : e->score < 0 ? "faster" : NULL;
}

static void add_sentence(const struct diff *d, const struct listed *l, struct report_output *out)
{
	const struct diff_figure *f = &l->e->rate;
	char text[1024];

	report_output__finding(out, "%s", diff_text__change(d, l->key, l->e, text, sizeof(text)));
	REPORT_FIGURES(out, FIGURE("change", V_TEXT(change_of(l->e))),
		       FIGURE("section", V_TEXT(section_keys[l->key->section])),
		       FIGURE("process", V_TEXT(diff__text_of(d, l->key->process))),
		       FIGURE("before_percent", V_DBL(f->side[DIFF_BEFORE] / 1e7)),
		       FIGURE("after_percent", V_DBL(f->side[DIFF_AFTER] / 1e7)),
		       FIGURE("noise_percent", V_DBL(f->noise / 1e7)));
	if (l->key->name)
		REPORT_FIGURES(out, FIGURE("name", V_TEXT(diff__text_of(d, l->key->name))));
}

static u32 add_sentences(const struct diff *d, const struct listed *list, u32 n, struct report_output *out)
{
	u32 n_sentences = 0;

	for (u32 i = 0; i < n && n_sentences < SENTENCES_MAX; i++) {
		if (!gets_sentence(list, n, i))
			continue;
		add_sentence(d, &list[i], out);
		n_sentences++;
	}
	return n_sentences;
}

/* Returns how many times as large the figure became, if both sides have it. */
static struct value factor_of(const struct diff_figure *f)
{
	return f->side[DIFF_BEFORE] > 0 && f->side[DIFF_AFTER] > 0 ? V_DBL(f->side[DIFF_AFTER] / f->side[DIFF_BEFORE]) :
								     V_NONE;
}

#define RATE_COLUMNS                                                            \
	{ "before_percent", "Before (%)", VALUE_DOUBLE, SHOW_PERCENT },         \
		{ "after_percent", "After (%)", VALUE_DOUBLE, SHOW_PERCENT },   \
		{ "difference_percent", "Change", VALUE_DOUBLE, SHOW_PERCENT }, \
		{ "noise_percent", "Noise up to", VALUE_DOUBLE, SHOW_PERCENT }, \
		{ "factor", "Factor", VALUE_DOUBLE, SHOW_PERCENT },             \
	{                                                                       \
		"change", "Became", VALUE_TEXT, SHOW_PLAIN                      \
	}

#define RATE_VALUES(e)                                                                                                 \
	V_DBL((e)->rate.side[DIFF_BEFORE] / 1e7), V_DBL((e)->rate.side[DIFF_AFTER] / 1e7),                             \
		V_DBL(((e)->rate.side[DIFF_AFTER] - (e)->rate.side[DIFF_BEFORE]) / 1e7), V_DBL((e)->rate.noise / 1e7), \
		factor_of(&(e)->rate), V_TEXT(change_of(e))

static const struct column function_columns[] = {
	{ "process", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "function", "Function", VALUE_TEXT, SHOW_PLAIN },
	RATE_COLUMNS,
	{ "before_share_percent", "of all CPU time before (%)", VALUE_DOUBLE, SHOW_NEVER },
	{ "after_share_percent", "of all CPU time after (%)", VALUE_DOUBLE, SHOW_NEVER },
	{ "before_samples", "Samples before", VALUE_U64, SHOW_COUNT },
	{ "after_samples", "Samples after", VALUE_U64, SHOW_COUNT },
};

static struct value share_of(const struct diff *d, const struct diff_entry *e, u32 side)
{
	return d->run_ns[side] > 0 ? V_DBL(100 * noise_sum__total(&e->side[side].ns) / d->run_ns[side]) : V_NONE;
}

static void add_function(const struct diff *d, const struct listed *l, struct table *t)
{
	table__add(t, V_TEXT(diff__text_of(d, l->key->process)), V_TEXT(diff__text_of(d, l->key->name)),
		   RATE_VALUES(l->e), share_of(d, l->e, DIFF_BEFORE), share_of(d, l->e, DIFF_AFTER),
		   V_U64(l->e->side[DIFF_BEFORE].samples), V_U64(l->e->side[DIFF_AFTER].samples));
}

static const struct column cause_columns[] = {
	{ "process", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "role", "Threads", VALUE_TEXT, SHOW_PLAIN },
	{ "kind", "Kind", VALUE_TEXT, SHOW_PLAIN },
	{ "reason", "What they did", VALUE_TEXT, SHOW_PLAIN },
	RATE_COLUMNS,
};

static void add_cause(const struct diff *d, const struct listed *l, struct table *t)
{
	char phrase[128];

	table__add(t, V_TEXT(diff__text_of(d, l->key->process)), V_TEXT(diff__text_of(d, l->key->thread)),
		   V_TEXT(finding_kind__key(l->key->kind)),
		   V_TEXT(finding_kind__phrase(l->key->kind, phrase, sizeof(phrase))), RATE_VALUES(l->e));
}

static const struct column finding_columns[] = {
	{ "process", "Process", VALUE_TEXT, SHOW_PLAIN },      { "kind", "Kind", VALUE_TEXT, SHOW_PLAIN },
	{ "function", "Function", VALUE_TEXT, SHOW_PLAIN },    { "before_rank", "Rank before", VALUE_U64, SHOW_PLAIN },
	{ "after_rank", "Rank after", VALUE_U64, SHOW_PLAIN }, RATE_COLUMNS,
	{ "status", "Finding", VALUE_TEXT, SHOW_PLAIN },
};

static const char *status_of(const struct diff_entry *e)
{
	if (!e->side[DIFF_BEFORE].rank)
		return e->rate.is_change ? "appeared" : "same";
	if (!e->side[DIFF_AFTER].rank)
		return e->rate.is_change ? "gone" : "same";
	if (!e->rate.is_change)
		return "same";
	return e->rate.side[DIFF_AFTER] > e->rate.side[DIFF_BEFORE] ? "grown" : "shrunk";
}

static void add_finding(const struct diff *d, const struct listed *l, struct table *t)
{
	u32 before = l->e->side[DIFF_BEFORE].rank, after = l->e->side[DIFF_AFTER].rank;

	table__add(t, V_TEXT(diff__text_of(d, l->key->process)), V_TEXT(finding_kind__key(l->key->kind)),
		   V_TEXT(l->key->name ? diff__text_of(d, l->key->name) : NULL), before ? V_U64(before) : V_NONE,
		   after ? V_U64(after) : V_NONE, RATE_VALUES(l->e), V_TEXT(status_of(l->e)));
}

static const struct column call_columns[] = {
	{ "process", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "call", "Call", VALUE_TEXT, SHOW_PLAIN },
	{ "before_per_s", "Calls/s before", VALUE_DOUBLE, SHOW_PLAIN },
	{ "after_per_s", "Calls/s after", VALUE_DOUBLE, SHOW_PLAIN },
	{ "noise_per_s", "Noise up to", VALUE_DOUBLE, SHOW_NEVER },
	{ "before_mean_ns", "Mean before", VALUE_DOUBLE, SHOW_NS },
	{ "after_mean_ns", "Mean after", VALUE_DOUBLE, SHOW_NS },
	{ "noise_mean_ns", "Noise up to", VALUE_DOUBLE, SHOW_NS },
	{ "before_p99_ns", "p99 before", VALUE_U64, SHOW_NS },
	{ "after_p99_ns", "p99 after", VALUE_U64, SHOW_NS },
	RATE_COLUMNS,
};

static struct value p99_of(const struct diff_entry *e, u32 side)
{
	/* stats__percentile() sorts the durations in place, so it takes no const pointer; their values do not change */
	struct stats *times = (struct stats *)&e->side[side].times;

	return times->count ? V_U64(stats__percentile(times, 99)) : V_NONE;
}

static void add_call(const struct diff *d, const struct listed *l, struct table *t)
{
	const struct diff_entry *e = l->e;

	table__add(t, V_TEXT(diff__text_of(d, l->key->process)), V_TEXT(diff__text_of(d, l->key->name)),
		   V_DBL(e->count.side[DIFF_BEFORE]), V_DBL(e->count.side[DIFF_AFTER]), V_DBL(e->count.noise),
		   V_DBL(e->mean.side[DIFF_BEFORE]), V_DBL(e->mean.side[DIFF_AFTER]), V_DBL(e->mean.noise),
		   p99_of(e, DIFF_BEFORE), p99_of(e, DIFF_AFTER), RATE_VALUES(e));
}

static void fill_tables(const struct diff *d, const struct listed *list, u32 n, struct report_output *out)
{
	static void (*const add[])(const struct diff *d, const struct listed *l, struct table *t) = {
		[DIFF_FUNCTIONS] = add_function,
		[DIFF_CAUSES] = add_cause,
		[DIFF_CALLS] = add_call,
		[DIFF_FINDINGS] = add_finding,
	};
	struct table *tables[DIFF_SECTIONS];

	tables[DIFF_FINDINGS] = REPORT_TABLE(out, "findings", "Findings, in % of the time", finding_columns);
	tables[DIFF_FUNCTIONS] =
		REPORT_TABLE(out, "functions", "CPU time by function, in % of a CPU", function_columns);
	tables[DIFF_CAUSES] = REPORT_TABLE(
		out, "causes", "What threads did, in % of the time, all threads of a role together", cause_columns);
	tables[DIFF_CALLS] = REPORT_TABLE(out, "calls", "Calls, in % of the time", call_columns);
	for (u32 i = 0; i < DIFF_SECTIONS; i++)
		tables[i]->limit = 15;
	for (u32 i = 0; i < n; i++)
		add[list[i].key->section](d, &list[i], tables[list[i].key->section]);
}

static void add_nothing(const struct diff *d, struct report_output *out)
{
	u32 n = 0;

	for (u32 i = 0; i < DIFF_SECTIONS; i++)
		n += d->compared[i];
	if (!n) {
		report_output__finding(out, "Nothing could be compared: the traces have no process in common that took "
					    "0.1%% of the time.");
		return;
	}
	report_output__finding(out,
			       "No difference exceeds the noise: %u finding%s, %u function%s, %u cause%s and %u "
			       "kind%s of call were compared.",
			       d->compared[DIFF_FINDINGS], text__s(d->compared[DIFF_FINDINGS]),
			       d->compared[DIFF_FUNCTIONS], text__s(d->compared[DIFF_FUNCTIONS]),
			       d->compared[DIFF_CAUSES], text__s(d->compared[DIFF_CAUSES]), d->compared[DIFF_CALLS],
			       text__s(d->compared[DIFF_CALLS]));
}

#define ALONE_MAX   6
#define ALONE_LEAST 1e7 /* ns of CPU time a second */

/* Adds a note on processes that only one trace has, those with most CPU time first. */
static void add_alone(const struct diff *d, u32 side, struct report_output *out)
{
	double below = INFINITY;
	char text[1024];
	struct text_buffer s = { .buf = text, .size = sizeof(text) };
	u32 n_named = 0;

	if (d->measured[side] <= 0)
		return;
	for (; n_named < ALONE_MAX; n_named++) {
		const struct diff_process *best = NULL, *p;
		u32 name = 0;

		for (u32 i = 0; i < d->processes.n; i++) {
			p = map__value(&d->processes, i);
			if (p->ns[!side] > 0 || p->run_ns[side] >= below ||
			    (best && p->run_ns[side] <= best->run_ns[side]))
				continue;
			best = p;
			name = *(const u32 *)map__key(&d->processes, i);
		}
		if (!best || best->run_ns[side] < ALONE_LEAST * d->measured[side])
			break;
		below = best->run_ns[side];
		text__add(&s, "%s%s (%.1f%% of a CPU)", n_named ? ", " : "", diff__text_of(d, name),
			  best->run_ns[side] / d->measured[side] / 1e7);
	}
	if (n_named)
		report_output__finding(out, "Only in trace %s, and therefore not compared: %s.",
				       side == DIFF_BEFORE ? "before" : "after", text);
}

/* Adds notes on families that only one trace has. */
static void add_families(const struct diff *d, u32 side, struct report_output *out)
{
	const struct schema *s = trace__schema(d->q[side]->trace);

	for (u32 i = 0; i < s->n_families; i++) {
		const char *name = s->families[i].name;

		if (!s->families[i].id || !query__has_family(d->q[side], name) || query__has_family(d->q[!side], name))
			continue;
		report_output__note(out, "Family %s was recorded only in trace %s: its events are not compared.", name,
				    side == DIFF_BEFORE ? "before" : "after");
	}
}

static void add_notes(const struct diff *d, struct report_output *out)
{
	const struct trace_head *a = trace__head(d->q[DIFF_BEFORE]->trace), *b = trace__head(d->q[DIFF_AFTER]->trace);

	report_output__note(out, "Compared: %.3f s before with %.3f s after; percentages are of these times.",
			    d->seconds[DIFF_BEFORE], d->seconds[DIFF_AFTER]);
	if (d->measured[DIFF_BEFORE] < d->seconds[DIFF_BEFORE] || d->measured[DIFF_AFTER] < d->seconds[DIFF_AFTER])
		report_output__note(
			out,
			"The scheduler and waits were recorded for %.3f s before and %.3f s after, in slices of time (record --cost-limit): their %% are of this time.",
			d->measured[DIFF_BEFORE], d->measured[DIFF_AFTER]);
	for (u32 side = 0; side < DIFF_SIDES; side++)
		add_families(d, side, out);
	if (trace__has(d->q[DIFF_BEFORE]->trace, "sample_cpu") != trace__has(d->q[DIFF_AFTER]->trace, "sample_cpu"))
		report_output__note(out, "Only one of the traces has samples: functions are not compared.");
	if (a->hostname && b->hostname && strcmp(a->hostname, b->hostname))
		report_output__note(out, "The traces are of two machines: %s with %u CPUs before, %s with %u after.",
				    a->hostname, a->cpus, b->hostname, b->cpus);
	if (d->left_out)
		report_output__note(out, "Too many functions and calls: the last %llu events were left out.",
				    d->left_out);
}

void diff__output(const struct diff *d, struct report_output *out)
{
	u32 n;
	struct listed *list = list_all(d, &n);

	if (!list) {
		out->failed = true;
		return;
	}
	if (!add_sentences(d, list, n, out))
		add_nothing(d, out);
	for (u32 side = 0; side < DIFF_SIDES; side++)
		add_alone(d, side, out);
	fill_tables(d, list, n, out);
	add_notes(d, out);
	free(list);
}
