// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Adds findings as sentences to the text, and with all fields to CSV and JSON. */
#include "findings/findings.h"
#include "model/lock_text.h"

static const char *const confidences[] = {
	[FINDING_MEASURED] = "measured",
	[FINDING_ATTRIBUTED] = "attributed",
	[FINDING_GUESSED] = "guessed",
};

static struct value share_of(const struct finding *f)
{
	return f->wall_ns ? V_DBL(table__percent(f->lost_ns, f->wall_ns)) : V_NONE;
}

/* A key with dots is a member of an object in the finding. */
static void add_fields(const struct finding *f, const struct query *q, const char *evidence, struct report_output *out)
{
	const struct finding_counterpart *counterpart = &f->counterpart;
	const struct finding_code *activity = &counterpart->activity_code;

	REPORT_FIELDS(out, FIELD("kind", V_TEXT(finding_kind__key(f->kind))), FIELD("pid", V_U64(f->pid)),
		      FIELD("tid", V_U64_IF(f->tid)), FIELD("device", f->has_device ? V_U64(f->device) : V_NONE),
		      FIELD("process", V_TEXT(NAMES_TITLE(q->names, f->pid, 0))),
		      FIELD("processes", V_U64(f->processes)), FIELD("threads", V_U64(f->threads)),
		      FIELD("lost_ns", V_U64(f->lost_ns)), FIELD("wall_ns", V_U64_IF(f->wall_ns)),
		      FIELD("share_percent", share_of(f)), FIELD("times", V_U64_IF(f->times)),
		      FIELD("call", V_TEXT_IF(f->call)), FIELD("call_ns", V_U64_IF(f->call_ns)),
		      FIELD("call_times", V_U64_IF(f->call_times)), FIELD("code.function", V_TEXT_IF(f->code.function)),
		      FIELD("code.file", V_TEXT_IF(f->code.file)), FIELD("code.line", V_U64_IF(f->code.line)),
		      FIELD("code.source", V_TEXT(f->code.source)), FIELD("code.caller", V_TEXT_IF(f->code.caller)),
		      FIELD("native", V_TEXT_IF(f->code.native)), FIELD("object", V_TEXT_IF(f->object)),
		      FIELD("counterpart.pid", V_U64_IF(counterpart->pid)),
		      FIELD("counterpart.tid", V_U64_IF(counterpart->tid)),
		      FIELD("counterpart.process",
			    V_TEXT(counterpart->pid ? NAMES_TITLE(q->names, counterpart->pid, 0) : NULL)),
		      FIELD("counterpart.function", V_TEXT_IF(counterpart->code.function)),
		      FIELD("counterpart.file", V_TEXT_IF(counterpart->code.file)),
		      FIELD("counterpart.line", V_U64_IF(counterpart->code.line)),
		      FIELD("counterpart.source", V_TEXT(counterpart->code.source)),
		      FIELD("counterpart.caller", V_TEXT_IF(counterpart->code.caller)),
		      FIELD("counterpart.native", V_TEXT_IF(counterpart->code.native)),
		      FIELD("counterpart.activity", V_TEXT_IF(counterpart->activity)),
		      FIELD("counterpart.share_percent", counterpart->percent ? V_DBL(counterpart->percent) : V_NONE),
		      FIELD("activity_code.function", V_TEXT_IF(activity->function)),
		      FIELD("activity_code.file", V_TEXT_IF(activity->file)),
		      FIELD("activity_code.line", V_U64_IF(activity->line)),
		      FIELD("activity_code.source", V_TEXT(activity->source)), FIELD("next", V_TEXT(evidence)),
		      FIELD("confidence", V_TEXT(confidences[f->confidence])), FIELD("advice", V_TEXT_IF(f->advice)));
}

static const struct column columns[] = {
	{ "kind", "Kind", VALUE_TEXT, SHOW_PLAIN },
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "threads", "Threads", VALUE_U64, SHOW_COUNT },
	{ "lost_ns", "Lost", VALUE_U64, SHOW_NS },
	{ "share_percent", "of its time (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "function", "Function", VALUE_TEXT, SHOW_PLAIN },
	{ "code_file", "File", VALUE_TEXT, SHOW_PLAIN },
	{ "line", "Line", VALUE_U64, SHOW_PLAIN },
	{ "native", "Native", VALUE_TEXT, SHOW_PLAIN },
	{ "call", "Call", VALUE_TEXT, SHOW_PLAIN },
	{ "object", "Object", VALUE_TEXT, SHOW_PLAIN },
	{ "caused_by_pid", "Counterpart's PID", VALUE_U64, SHOW_PLAIN },
	{ "caused_by_function", "Counterpart", VALUE_TEXT, SHOW_PLAIN },
	{ "caused_by_file", "Counterpart's file", VALUE_TEXT, SHOW_PLAIN },
	{ "caused_by_line", "Counterpart's line", VALUE_U64, SHOW_PLAIN },
	{ "next", "Command that shows more", VALUE_TEXT, SHOW_PLAIN },
	{ "confidence", "Confidence", VALUE_TEXT, SHOW_PLAIN },
	{ "text", "Text", VALUE_TEXT, SHOW_PLAIN },
};

static void add_row(const struct finding *f, const char *evidence, struct table *t)
{
	const struct finding_counterpart *counterpart = &f->counterpart;

	table__add(t, V_TEXT(finding_kind__key(f->kind)), V_U64(f->pid), V_U64(f->threads), V_U64(f->lost_ns),
		   share_of(f), V_TEXT_IF(f->code.function), V_TEXT_IF(f->code.file), V_U64_IF(f->code.line),
		   V_TEXT_IF(f->code.native), V_TEXT_IF(f->call), V_TEXT_IF(f->object), V_U64_IF(counterpart->pid),
		   V_TEXT_IF(counterpart->code.function), V_TEXT_IF(counterpart->code.file),
		   V_U64_IF(counterpart->code.line), V_TEXT(evidence), V_TEXT(confidences[f->confidence]),
		   V_TEXT(f->text));
}

void finding__report(const struct finding *f, const struct query *q, bool next, struct report_output *out)
{
	char evidence[FINDING_EVIDENCE];

	finding__evidence(f, q, evidence, sizeof(evidence));
	report_output__finding(out, "%s", f->text);
	report_output__clauses(out, f->clauses, f->n_clauses);
	if (next)
		report_output__next(out, evidence);
	add_fields(f, q, evidence, out);
}

static bool matters(const struct findings *findings, const struct finding *f, const struct query *q)
{
	const struct finding *first = findings__ranked(findings, 0);

	return f == first || (f->weight >= first->weight / 30 && f->weight >= (double)query__duration(q) / 50);
}

bool findings__is_printed(const struct findings *findings, const struct finding *f, const struct query *q,
			  struct findings_printed *printed)
{
	u32 *n = f->is_notice ? &printed->notices : &printed->causes;

	if (*n == (f->is_notice ? NOTICES_MAX : FINDINGS_MAX) || (!f->is_notice && !matters(findings, f, q)))
		return false;
	++*n;
	return true;
}

void findings__add_to(const struct findings *findings, const struct query *q, struct report_output *out)
{
	struct table *t = REPORT_TABLE(out, "findings", "Findings", columns);
	const struct finding *f;
	char evidence[FINDING_EVIDENCE], left_out[128];
	struct findings_printed printed = {};

	t->machine_only = true;
	for (u32 i = 0; (f = findings__ranked(findings, i)) != NULL; i++) {
		finding__evidence(f, q, evidence, sizeof(evidence));
		add_row(f, evidence, t);
		if (findings__is_printed(findings, f, q, &printed))
			finding__report(f, q, !f->is_notice || *f->report, out);
	}
	if (findings__left_out(findings))
		report_output__note(out, "%s",
				    lock_text__left_out(findings__left_out(findings), left_out, sizeof(left_out)));
}
