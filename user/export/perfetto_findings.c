// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The causes of lost time, as `sonde report` ranks them: a slice each over the time that they are found in, on tracks
 * of their own.
 */
#include <stdio.h>
#include <string.h>

#include "export/perfetto.h"
#include "findings/findings.h"

static void put_number(struct perfetto *p, const char *name, double value, const char *unit)
{
	char text[32];

	snprintf(text, sizeof(text), "%.1f%s", value, unit);
	track_event__argument(p, name, text);
}

static void put_code(struct perfetto *p, const char *name, const struct finding_code *code)
{
	char text[512];

	finding_code__write(code, "", "", text, sizeof(text));
	if (*text)
		track_event__argument(p, name, text);
}

static void put_finding(struct perfetto *p, const struct finding *f, u32 rank, const struct interval *span)
{
	const struct track *t = perfetto__reserve_global(p, TRACK_FINDINGS, "Findings", span);
	char label[64];
	size_t at;

	if (!t)
		return;
	at = track_event__begin(p, span->start, t, TRACK_EVENT_BEGIN);
	track_event__name(p, f->text);
	track_event__category(p, "finding");
	put_number(p, "rank", rank, "");
	track_event__argument(p, "kind", finding_kind__key(f->kind));
	track_event__argument(p, "process", names__label(p->e->names, label, sizeof(label), f->pid, 0));
	put_number(p, "lost", (double)f->lost_ns / 1e6, " ms");
	put_number(p, "share", f->wall_ns ? 100 * (double)f->lost_ns / (double)f->wall_ns : 0, "%");
	put_code(p, "code", &f->code);
	put_code(p, "counterpart", &f->counterpart.code);
	track_event__end(p, at);
	at = track_event__begin(p, span->end, t, TRACK_EVENT_END);
	track_event__end(p, at);
}

int perfetto__findings(struct perfetto *p)
{
	struct trace_facts facts;
	const struct trace_summary *s = trace__summary(p->e->trace);
	struct query q = { .trace = p->e->trace, .names = (struct names *)p->e->names, .facts = &facts };
	struct interval span;
	struct findings *found;
	const struct finding *f;
	struct findings_printed printed = {};
	u32 put = 0;
	int err;

	if (!p->e->facts)
		return 0;
	facts = *p->e->facts;
	q.start = facts.start;
	/* the same time as that of the reports; the export has read all events by now */
	query__limit(&q, &facts);
	span.start = q.from > s->first ? q.from : s->first;
	span.end = q.to && q.to < s->last ? q.to : s->last;
	err = findings__read(&found, &q, 0);
	for (u32 i = 0; !err && (f = findings__ranked(found, i)) != NULL; i++)
		if (findings__is_printed(found, f, &q, &printed))
			put_finding(p, f, ++put, &span);
	findings__free(found);
	return err;
}
