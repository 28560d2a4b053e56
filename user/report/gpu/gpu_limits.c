// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What report gpu cannot know, and the limits of its figures. */
#include "model/gpu_refusals.h"
#include "output/text.h"
#include "report/gpu/cuda_work.h"
#include "report/gpu/gpu.h"

static void add_host_finding(const struct gpu_report *r, struct report_output *out, u32 pid,
			     const struct gpu_host_work *a, const char *refused)
{
	const char *advice = refused ? gpu_refusal__advice(refused) : "";
	char who[64], text[256];

	snprintf(text, sizeof(text), "%s launched kernels %s times and copies or sets %s times",
		 names__label(r->busy.args->names, who, sizeof(who), pid, 0), TEXT_COUNT(a->kernels + a->graphs),
		 TEXT_COUNT(a->copies + a->sets));
	if (refused)
		report_output__finding(out, "%s; what its GPU did in the meantime is not known: %s.%s%s", text, refused,
				       *advice ? " " : "", advice);
	else
		report_output__finding(
			out,
			"%s; what its GPU did in the meantime is not "
			"known, because sonde's CUPTI library is not loaded. `sonde record -t +gpu -- COMMAND` loads it; `sonde doctor` "
			"shows other ways to load it.",
			text);
}

/* Adds a finding for each process without device records, as it is not known whether its devices were busy. */
int gpu_report__add_host_findings(const struct gpu_report *r, struct report_output *out)
{
	struct gpu_refusals refusals;
	int err = gpu_refusals__read(&refusals, r->busy.args);

	if (!err)
		MAP_EACH_ENTRY(const struct gpu_host_work *a, const u32 *pid, &r->busy.host_work)
			add_host_finding(r, out, *pid, a, gpu_refusals__of(&refusals, *pid));
	gpu_refusals__free(&refusals);
	return err;
}

void gpu_report__add_notes(const struct gpu_report *r, struct report_output *out)
{
	const struct gpu_coverage *t = &r->busy.coverage;
	u64 graphs = 0;

	for (u32 i = 0; i < r->busy.devices.n; i++)
		graphs += gpu_busy__sum(&r->busy, i)->graphs;
	if (r->busy.devices.n)
		report_output__note(
			out,
			"A device's time is from the start of its first work to the end of its last. Each process numbers its devices itself, so there is a row for each process. Its times are within %s of the host's.",
			TEXT_NS(t->clock_error));
	if (r->gaps.guessed)
		report_output__note(
			out,
			"Where no sample (-F) fell into a gap, its time on a CPU is attributed to the function that made the next launch.");
	if (graphs)
		report_output__note(
			out,
			"Launched graphs are recorded as a whole and count as busy (%s): --gpu=nodes records their nodes.",
			TEXT_COUNT(graphs));
	if (r->busy.shortest)
		report_output__note(out, "Gaps below %s are only summed up: there are too many.",
				    TEXT_NS(r->busy.shortest));
	cuda_work__add_unwatched_note(t, out);
	if (t->dropped || t->dropped_bytes)
		report_output__note(
			out,
			"%s records of work on GPUs were lost: in a part of the idle time a GPU may have been busy.",
			t->dropped ? TEXT_COUNT(t->dropped) : "Some");
}
