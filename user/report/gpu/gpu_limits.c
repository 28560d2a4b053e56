// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What report gpu cannot know, and the limits of its figures. */
#include "output/text.h"
#include "report/gpu/cuda_work.h"
#include "report/gpu/gpu.h"

/* Adds a finding for each process without device records, as it is not known whether its devices were busy. */
void gpu_report__add_host_findings(const struct gpu_report *r, struct report_output *out)
{
	char who[64], kernels[TEXT_NUMBER], copies[TEXT_NUMBER];

	for (u32 i = 0; i < r->busy.host_work.n; i++) {
		const struct gpu_host_work *a = map__value(&r->busy.host_work, i);
		u32 pid = *(const u32 *)map__key(&r->busy.host_work, i);

		report_output__finding(
			out,
			"%s launched kernels %s times and copies or sets %s times; what its GPU did in the meantime is not "
			"known, because sonde's CUPTI library is not loaded. `sonde record -t +gpu -- COMMAND` loads it; `sonde doctor` "
			"shows other ways to load it.",
			names__label(r->busy.args->names, who, sizeof(who), pid, 0),
			text__count(kernels, sizeof(kernels), a->kernels + a->graphs),
			text__count(copies, sizeof(copies), a->copies + a->sets));
	}
}

void gpu_report__add_notes(const struct gpu_report *r, struct report_output *out)
{
	const struct gpu_coverage *t = &r->busy.coverage;
	char error[TEXT_NUMBER], count[TEXT_NUMBER], shortest[TEXT_NUMBER];
	u64 graphs = 0;

	for (u32 i = 0; i < r->busy.devices.n; i++)
		graphs += gpu_busy__sum(&r->busy, i)->graphs;
	if (r->busy.devices.n)
		report_output__note(
			out,
			"A device's time is from its first work to the end of its last one, by process: devices "
			"have each process's own numbers. Its times are within %s of the host's.",
			text__ns(error, sizeof(error), t->clock_error));
	if (r->gaps.guessed)
		report_output__note(out,
				    "Where there are no samples (-F), a function on a CPU is that of the next launch.");
	if (graphs)
		report_output__note(
			out,
			"Launched graphs are recorded as a whole and count as busy (%s): --gpu=nodes records their nodes.",
			text__count(count, sizeof(count), graphs));
	if (r->busy.shortest)
		report_output__note(out, "Gaps below %s are only summed up: there are too many.",
				    text__ns(shortest, sizeof(shortest), r->busy.shortest));
	cuda_work__add_unwatched_note(t, out);
	if (t->dropped || t->dropped_bytes)
		report_output__note(out, "%s records of the devices were lost: some of what is called idle was not.",
				    t->dropped ? text__count(count, sizeof(count), t->dropped) : "Some");
}
