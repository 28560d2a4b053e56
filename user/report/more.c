// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report/more.h"

#include <stdio.h>

#include "model/facts.h"
#include "output/text.h"

struct more {
	const struct schema *schema;
	const struct map *kinds;
	char text[512];
	size_t len;
};

static void add_report(const struct report *r, void *arg)
{
	struct more *m = arg;

	for (u32 i = 0; i < m->schema->n_events && m->len < sizeof(m->text); i++) {
		const struct schema_event *e = &m->schema->events[i];

		if (!map__find(m->kinds, &e->id) || !report__is_about(r, m->schema, e))
			continue;
		m->len += (size_t)snprintf(m->text + m->len, sizeof(m->text) - m->len, "%s%s", m->len ? "|" : "",
					   r->name);
		return;
	}
}

/* Adds a note on events from before all probes were attached, or while they were detached. */
static void add_outside(const struct query *args, struct report_output *out)
{
	const struct trace_facts *f = args->facts;
	char traced[TEXT_NUMBER], from[TEXT_NUMBER], to[TEXT_NUMBER];

	if (f && f->paused_ns && !f->from && !f->to) {
		u64 traced_ns = trace_facts__traced(f);

		report_output__note(
			out,
			"Recorded %s of %s: the recording was paused for the rest. Rates and shares are of the recorded time.",
			text__ns(traced, sizeof(traced), traced_ns),
			text__ns(from, sizeof(from), traced_ns + f->paused_ns));
		return;
	}
	if (!f || f->from || f->to || (f->live <= f->start && f->stop >= f->summary->last))
		return;
	report_output__note(
		out,
		"Traced for %s, from %s to %s s of the trace%s: what was recorded while probes were being attached "
		"or detached is in no figure (`--time 0..` counts it).",
		text__ns(traced, sizeof(traced), trace_facts__traced(f)),
		text__seconds(from, sizeof(from), f->live, f->start, 3),
		text__seconds(to, sizeof(to), f->stop, f->start, 3),
		f->n_windows > 1 && !f->paused_ns ? " without the time between recordings" : "");
}

void more__add_notes(const struct query *args, const struct map *kinds, struct report_output *out)
{
	struct more m = { .schema = trace__schema(args->trace), .kinds = kinds };

	report__each(add_report, &m);
	if (m.len)
		report_output__note(out, "More: `sonde report FILE %s`.", m.text);
	add_outside(args, out);
}
