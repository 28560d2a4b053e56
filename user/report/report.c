// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report/report.h"
#include "report/nvtx/parts.h"

#include <string.h>

#include "model/facts.h"
#include "output/text.h"

REGISTRY(report, sonde_reports);

void report__nothing(const struct query *args, struct report_output *out, const char *what, const char *family)
{
	bool timed = args->facts && (args->facts->from || args->facts->to);

	report_output__finding(out, "%s%s%s.", what, timed ? " in this time" : "",
			       args->tids.n	? " of this thread" :
			       args->pids.n > 1 ? " of these processes" :
			       args->pids.n	? " of this process" :
						  "");
	if (!query__has_family(args, family))
		report_output__finding(out, "The trace was made without family %s: `sonde record -t +%s` adds it.",
				       family, family);
}

bool report__is_about(const struct report *r, const struct schema *schema, const struct schema_event *e)
{
	const struct schema_family *f = schema__family_by_id(schema, (u8)EVENT_FAMILY(e->id));

	return r->kinds &&
	       (text__has_item(r->kinds, ',', e->name) || (f && f->id && text__has_item(r->kinds, ',', f->name)));
}

const struct report *report__find(const char *name)
{
	return REGISTRY_FIND(sonde_reports, name);
}

void report__each(void (*fn)(const struct report *r, void *arg), void *arg)
{
	const struct report *r = NULL;

	while ((r = REGISTRY_NEXT(sonde_reports, r, NULL)))
		fn(r, arg);
}

struct ns_pids {
	const struct names *names;
	u32 pid; /* index of the column */
};

static struct value ns_pid(const struct value *row, void *arg)
{
	const struct ns_pids *n = arg;
	const struct task *t = row[n->pid].type == VALUE_U64 ? names__task(n->names, (u32)row[n->pid].u, 0) : NULL;

	return t && t->ns_pid ? V_U64(t->ns_pid) : V_NONE;
}

/* Adds the pid in the process's own pid namespace to CSV and JSON; column pid is as in sonde's namespace. */
static void add_ns_pids(struct report_output *out, const struct names *names)
{
	static const struct column column = { "ns_pid", "Pid in its namespace", VALUE_U64, SHOW_NEVER };

	for (struct table *t = out->tables; t; t = t->next) {
		int pid = table__column(t, "pid");
		struct ns_pids n = { .names = names, .pid = (u32)pid };

		if (pid >= 0)
			table__insert(t, n.pid + 1, &column, ns_pid, &n);
	}
}

/* Does the key name a pid or tid, such as "waker_tid"? */
static bool is_task_key(const char *key)
{
	size_t len = strlen(key);

	return len >= 3 && (!strcmp(key + len - 3, "pid") || !strcmp(key + len - 3, "tid"));
}

static void replace_id(const struct names *names, const char *key, struct value *value)
{
	if (value->type == VALUE_U64 && is_task_key(key))
		value->u = names__number(names, (u32)value->u);
}

/* Replaces the ids that reports use for reused pids and tids by the pids and tids. */
static void replace_ids(struct report_output *out, const struct names *names)
{
	for (struct table *t = out->tables; t; t = t->next)
		for (u32 i = 0; i < t->n_rows; i++)
			for (u32 c = 0; c < t->n_columns; c++)
				replace_id(names, t->columns[c].key, &table__row(t, i)[c]);
	for (u32 i = 0; i < out->n_findings; i++) {
		struct report_finding *f = &out->findings[i];

		for (u32 k = 0; k < f->n_figures; k++)
			replace_id(names, f->figures[k].key, &f->figures[k].value);
		for (u32 k = 0; k < f->n_fields; k++)
			replace_id(names, f->fields[k].key, &f->fields[k].value);
	}
}

/* Adds a note if the scheduler and waits were recorded in slices of time. All reports may contain their figures. */
static void add_unmeasured(const struct query *q, struct report_output *out)
{
	u64 all = query__duration(q), measured = query__measured(q);

	if (measured < all)
		report_output__note(
			out,
			"The scheduler, waits and wake-ups were recorded in slices of time, %s of %s, to limit the cost (record --cost-limit): their times and counts are of this part, and shares are relative to it. Waits are cut at the ends of a slice.",
			TEXT_NS(measured), TEXT_NS(all));
	if (q->facts && q->facts->unmeasured_joined)
		report_output__note(
			out,
			"The trace has too many slices of time: what was measured between the last pauses counts as not measured, so that shares of late times are too large.");
}

int report__run(const struct report *r, const struct query *q, struct report_output *out)
{
	bool by_range = r->nvtx && q->group_by && !strcmp(q->group_by, "nvtx");
	int err = by_range ? nvtx_parts__run(r->nvtx, q, out) : r->run(q, out);

	if (err)
		return err;
	add_unmeasured(q, out);
	add_ns_pids(out, q->names);
	replace_ids(out, q->names);
	return 0;
}
