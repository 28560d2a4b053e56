// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report/overview/more.h"

#include <stdio.h>

#include "model/facts.h"
#include "output/text.h"
#include "util/path.h"

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

/* Adds a note on the pauses in the time that the report is of. */
static void add_pauses(const struct query *args, struct report_output *out)
{
	const struct trace_facts *f = args->facts;
	u64 begin = f->from > f->start ? f->from : f->start,
	    end = f->to && f->to < f->summary->last ? f->to : f->summary->last;
	u64 recorded = f->from || f->to ? query__duration(args) : trace_facts__traced(f);
	u64 all = f->from || f->to ? (end > begin ? end - begin : 0) : recorded + f->paused_ns;

	if (recorded < all)
		report_output__note(
			out,
			"Recorded %s of %s: the recording was paused for the rest. Rates and shares are of the recorded time.",
			TEXT_NS(recorded), TEXT_NS(all));
	if (f->pauses_joined)
		report_output__note(
			out,
			"The trace has too many pauses: the last ones count as one, so that what was recorded between them is in no figure.");
}

/* Adds a note on events from before all probes were attached, or while they were detached. */
static void add_outside(const struct query *args, struct report_output *out)
{
	const struct trace_facts *f = args->facts;

	if (f && f->paused_ns) {
		add_pauses(args, out);
		return;
	}
	if (!f || f->from || f->to || (f->live <= f->start && f->stop >= f->summary->last))
		return;
	report_output__note(
		out, "All figures cover %s, from %s to %s s%s, when all probes were attached. `--time 0..` counts all.",
		TEXT_NS(trace_facts__traced(f)), TEXT_SECONDS(f->live, f->start, 3), TEXT_SECONDS(f->stop, f->start, 3),
		f->n_windows > 1 ? " without the time between recordings" : "");
}

/* Adds a note if a process runs PyTorch and its operators were not recorded. */
static void add_torch(const struct query *args, const struct stacks *stacks, struct report_output *out)
{
	const struct trace_facts *facts = args->facts;
	bool found = false;

	if (!facts || !facts->head || !facts->head->families || text__has_item(facts->head->families, ',', "torch"))
		return;
	for (u32 i = 0; !found && i < stacks__count(stacks); i++)
		found = path__begins_with(path__file_name(stacks__frame(stacks, stacks__id(stacks, i))->file),
					  "libtorch_cpu.so");
	if (found)
		report_output__note(
			out,
			"A process runs PyTorch: `sonde record -t +torch` records its operators and the phases of its training steps.");
}

void more__add_notes(const struct query *args, const struct map *kinds, const struct stacks *stacks,
		     struct report_output *out)
{
	struct more m = { .schema = trace__schema(args->trace), .kinds = kinds };

	report__each(add_report, &m);
	if (m.len)
		report_output__note(out, "More: `sonde report FILE %s`.", m.text);
	add_torch(args, stacks, out);
	add_outside(args, out);
}
