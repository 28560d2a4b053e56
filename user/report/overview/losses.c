// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report losses: lost records, times before a library was probed, calls filtered out. */
#include <stdio.h>
#include <string.h>

#include "core/meta.h"
#include "model/facts.h"
#include "model/gpu_refusals.h"
#include "output/text.h"
#include "report/origin.h"
#include "report/report.h"

struct losses {
	const struct query *args;
	struct table *losses, *attach_gaps, *skipped;
	bool has_driver; /* libcuda was probed */
	u32 hidden; /* objects that contain a libcudart without symbols */
};

static const struct column loss_columns[] = {
	{ "family", "Family", VALUE_TEXT, SHOW_PLAIN },
	{ "reason", "Reason", VALUE_TEXT, SHOW_PLAIN },
	{ "count", "Lost", VALUE_U64, SHOW_COUNT },
	{ "from_ns", "From (s)", VALUE_S64, SHOW_SECONDS },
	{ "to_ns", "To (s)", VALUE_S64, SHOW_SECONDS },
	{ "share_percent", "At most (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "changes", "What it changes", VALUE_TEXT, SHOW_NEVER },
	{ "path", "Object", VALUE_TEXT, SHOW_PLAIN },
};

static const struct column attach_gap_columns[] = {
	{ "family", "Family", VALUE_TEXT, SHOW_PLAIN },		 { "from_ns", "Mapped (s)", VALUE_S64, SHOW_SECONDS },
	{ "live_ns", "Probed (s)", VALUE_S64, SHOW_SECONDS },	 { "attach_gap_ns", "Attach gap", VALUE_U64, SHOW_NS },
	{ "why", "Not probed because", VALUE_TEXT, SHOW_PLAIN }, { "path", "Object", VALUE_TEXT, SHOW_PLAIN },
};

static const struct column refused_columns[] = {
	{ "family", "Family", VALUE_TEXT, SHOW_PLAIN },	      { "program", "Program", VALUE_TEXT, SHOW_PLAIN },
	{ "lacks", "Missing", VALUE_TEXT, SHOW_PLAIN },	      { "family_off", "Family off", VALUE_TEXT, SHOW_PLAIN },
	{ "why", "Refused because", VALUE_TEXT, SHOW_PLAIN },
};

static const struct column skipped_columns[] = {
	{ "probe", "Probe", VALUE_TEXT, SHOW_PLAIN },
	{ "hits", "Hits", VALUE_U64, SHOW_COUNT },
	{ "skipped", "Not recorded", VALUE_U64, SHOW_COUNT },
};

static const char *family_name(const struct losses *l, u64 id)
{
	const struct schema_family *f = schema__family_by_id(trace__schema(l->args->trace), (u8)id);

	return f ? f->name : NULL;
}

static int on_objects(const struct rows *rows, void *arg)
{
	struct losses *l = arg;
	u64 first, live, start = l->args->start;
	const char *why;

	ROWS_EACH(v, rows) {
		first = (u64)view__get(&v, "first");
		live = (u64)view__get(&v, "live");
		why = names__string(l->args->names, (u32)view__get(&v, "why"));
		/* The time before the trace is not missing for objects that the first scan found. */
		if (first < start)
			first = start;
		if (live && live <= first && !*why)
			continue;
		if (l->has_driver && !strncmp(why, WHY_HIDDEN_CUDART, strlen(WHY_HIDDEN_CUDART))) {
			l->hidden++;
			continue;
		}
		if (l->args->to && first >= l->args->to)
			continue;
		if (live && live <= l->args->from && !*why)
			continue;
		table__add(l->attach_gaps, V_TEXT(family_name(l, (u64)view__get(&v, "family"))),
			   V_S64((s64)(first - start)), live ? V_S64((s64)(live - start)) : V_NONE,
			   live ? V_U64(live > first ? live - first : 0) : V_NONE, V_TEXT(*why ? why : NULL),
			   V_TEXT(names__string(l->args->names, (u32)view__get(&v, "path"))));
	}
	return 0;
}

static int on_driver(const struct rows *rows, void *arg)
{
	struct losses *l = arg;
	const struct schema_family *f = schema__family(trace__schema(l->args->trace), "cudadrv");

	ROWS_EACH(v, rows)
		l->has_driver |= f && view__get(&v, "family") == f->id && view__get(&v, "live");
	return 0;
}

static int on_hits(const struct rows *rows, void *arg)
{
	struct losses *l = arg;
	const char *name;
	char number[16];
	u16 probe;

	ROWS_EACH(v, rows) {
		if (!view__get(&v, "skipped"))
			continue;
		probe = (u16)view__get(&v, "number");
		name = names__probe(l->args->names, probe);
		snprintf(number, sizeof(number), "%u", probe);
		table__add(l->skipped, V_TEXT(name ? name : number), V_U64((u64)view__get(&v, "hits")),
			   V_U64((u64)view__get(&v, "skipped")));
	}
	return 0;
}

/* Metadata has no process and the time of writing, so all of it is read. */
static int read_all(const struct query *args, const char *kind, int (*cb)(const struct rows *rows, void *arg),
		    void *arg)
{
	struct query all = *args;

	all.from = all.to = 0;
	all.pids.n = all.tids.n = 0;
	return query__read_kind(&all, kind, cb, arg);
}

/* Adds "4,522 records are missing, 18 of them from outside of the traced time." */
static void add_lost_finding(struct report_output *out, u64 lost, u64 outside)
{
	char count[TEXT_NUMBER], part[TEXT_NUMBER];

	text__count(count, sizeof(count), lost);
	text__count(part, sizeof(part), outside);
	if (outside && outside < lost)
		report_output__finding(out, "%s records are missing, %s of them from outside of the traced time.",
				       count, part);
	else
		report_output__finding(out, "%s record%s missing%s.", count, lost == 1 ? " is" : "s are",
				       outside ? ", from outside of the traced time" : "");
}

static void add_findings(const struct losses *l, struct report_output *out)
{
	const struct trace_facts *f = l->args->facts;
	u64 lost = 0, outside = 0;
	u32 i;

	for (i = 0; i < f->n_losses; i++)
		lost += loss__records(&f->losses[i]);
	for (i = 0; i < f->n_losses; i++)
		outside += f->losses[i].outside ? f->losses[i].count : 0;
	if (lost)
		add_lost_finding(out, lost, outside);
	else
		report_output__finding(out, "No record is missing%s.",
				       l->attach_gaps->n_rows ? " where the probes were in place" : "");
	if (l->attach_gaps->n_rows)
		report_output__finding(out, "%u object%s not probed from the start or not in full.",
				       l->attach_gaps->n_rows, l->attach_gaps->n_rows == 1 ? " was" : "s were");
	if (l->hidden)
		report_output__finding(out,
				       "%u object%s a libcudart without symbols, as NVIDIA's own libraries do: what "
				       "they launch is recorded by the probes of libcuda alone.",
				       l->hidden, l->hidden == 1 ? " contains" : "s contain");
}

static void add_refused(const struct trace_facts *f, struct report_output *out)
{
	struct table *t;

	if (!f->n_refused)
		return;
	t = REPORT_TABLE(out, "refused", "Programs that the kernel refused", refused_columns);
	for (u32 i = 0; i < f->n_refused; i++)
		table__add(t, V_TEXT(f->refused[i].family_name), V_TEXT(f->refused[i].program),
			   V_TEXT(f->refused[i].lacks), V_TEXT(f->refused[i].is_whole_family ? "yes" : "no"),
			   V_TEXT(f->refused[i].why));
	report_output__finding(out, "%u program%s of sonde's did not run: the kernel refused %s.", f->n_refused,
			       text__s(f->n_refused), f->n_refused == 1 ? "it" : "them");
}

/* Adds why processes have no device times. 0 or negative errno */
static int add_refusals(const struct query *args, struct report_output *out)
{
	struct gpu_refusals r;
	int err = gpu_refusals__read(&r, args);
	char who[64];

	for (u32 i = 0; !err && i < r.reasons.n; i++) {
		u32 pid = *(const u32 *)map__key(&r.reasons, i);
		const char *why = gpu_refusals__of(&r, pid), *advice = why ? gpu_refusal__advice(why) : "";

		if (why)
			report_output__finding(out, "%s has no device times: %s.%s%s",
					       names__label(args->names, who, sizeof(who), pid, 0), why,
					       *advice ? " " : "", advice);
	}
	gpu_refusals__free(&r);
	return err;
}

/* Each output ends with the first warnings. */
static void add_warnings(const struct trace_facts *f, struct report_output *out)
{
	if (f->n_warnings)
		report_output__finding(
			out, "The recording printed %u warning%s of what it could not read, examine or attach.",
			f->n_warnings, text__s(f->n_warnings));
	for (u32 i = WARNINGS_SHOWN; i < f->n_warnings; i++)
		report_output__note(out, "record warned: %s", f->warnings[i]);
}

static int run(const struct query *args, struct report_output *out)
{
	const struct trace_facts *f = args->facts;
	struct loss_times times = trace_facts__times(f);
	struct losses l = { .args = args };
	char text[256];
	u32 i;
	int err;

	l.losses = REPORT_TABLE(out, "losses", "Lost records", loss_columns);
	l.attach_gaps = REPORT_TABLE(out, "attach_gaps",
				     "Objects that were mapped before they were probed, or not probed in full",
				     attach_gap_columns);
	l.skipped = REPORT_TABLE(
		out, "skipped",
		"Hits of probes that are left out on purpose: outside of the targets, or within another call",
		skipped_columns);
	for (i = 0; i < f->n_losses; i++)
		table__add(l.losses, V_TEXT(f->losses[i].family_name), V_TEXT(loss__reason(f->losses[i].reason)),
			   V_U64(f->losses[i].count), V_S64((s64)(f->losses[i].first - f->start)),
			   V_S64((s64)(f->losses[i].last - f->start)),
			   loss__records(&f->losses[i]) && !f->losses[i].outside ? V_DBL(loss__percent(&f->losses[i])) :
										   V_NONE,
			   V_TEXT(loss__consequence(text, sizeof(text), &f->losses[i], &times)),
			   V_TEXT(f->losses[i].path));
	err = read_all(args, "meta_object", on_driver, &l);
	if (!err)
		err = read_all(args, "meta_object", on_objects, &l);
	if (!err)
		err = read_all(args, "meta_hits", on_hits, &l);
	table__sort(l.losses, "count");
	table__sort(l.attach_gaps, "attach_gap_ns");
	table__sort(l.skipped, "skipped");
	add_findings(&l, out);
	add_refused(f, out);
	err = err ?: add_refusals(args, out);
	add_warnings(f, out);
	return err;
}

REPORT(losses) = {
	.name = "losses",
	.doc = "what is missing: lost records by family, reason and time; libraries probed late or not at all; warnings",
	.run = run,
};
