// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The state of a recording: what was recorded, for how long, and at what cost. */
#include "record/discover/objects.h"
#include "record/drain/losses.h"
#include "record/metadata.h"
#include "record/parts.h"
#include "sandbox/usage.h"

/* Returns whether a chosen family probes mapped files, and not only tracepoints. */
static bool needs_objects(const struct session *s)
{
	PROGRAMS_EACH(p, &s->embedded.probes)
		if (p->enabled && section__is_in_file(&p->section))
			return true;
	return false;
}

struct session_times session__times(const struct session *s)
{
	return (struct session_times){
		.start = s->time.head,
		.live = s->time.started,
		.stop = s->time.stopped ? s->time.stopped : session__now(s),
	};
}

static u32 families_on(const struct session *s)
{
	u32 n = 0;

	for (u32 i = 0; i < s->embedded.schema->n_families; i++) {
		u8 id = s->embedded.schema->families[i].id;

		n += id && s->load.family_on[id];
	}
	return n;
}

void session__status(struct session *s, struct session_status *out)
{
	struct session_times t = session__times(s);
	u64 live = t.live && t.stop > t.live ? t.stop - t.live : 0, paused = s->suspension.paused_ns;

	if (!s->writer) {
		*out = (struct session_status){ .not_attached = s->not_attached };
		return;
	}
	*out = (struct session_status){
		.events = trace_writer__events(s->writer),
		.bytes = trace_writer__bytes(s->writer),
		.lost = losses__total(s->losses),
		.cut_off = s->write_error != 0,
		.traced = s->drain.traced,
		.at_tracepoints = s->drain.at_tracepoints,
		.wall_ns = session__now(s) - s->time.started,
		.live_ns = live,
		.paused_ns = paused < live ? paused : live,
		.is_paused = suspension__is_on(&s->suspension),
		.unmeasured_ns = suspension__unmeasured(s),
		.cost_limit = s->args->cost_limit,
		.cpu_ns = usage__total_ns() - s->time.cpu_at_start,
		.needs_objects = needs_objects(s),
		.objects = objects__probed(s->objects),
		.not_attached = s->not_attached,
		.none_usable = s->meters.n_absent && s->meters.n_absent == families_on(s),
	};
	out->hits = metadata__total_hits(s, &out->skipped_hits);
	out->probes_ns = metadata__probes_ns(s, out->hits);
}
