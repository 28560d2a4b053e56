// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Findings on how busy the devices were, and with what. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/text.h"
#include "report/cuda_work.h"
#include "report/gpu.h"

/* One cause of a device's idle time, and the detail `of` with the largest part (`most` ns) of it. */
struct cause_total {
	u64 ns;
	u64 most;
	u32 of;
};

static u64 sum_causes(const struct gpu_report *r, u32 device, struct cause_total *totals)
{
	const struct map *sums = &r->gaps.sums;
	u64 idle = 0;

	memset(totals, 0, GAP_CAUSES * sizeof(*totals));
	for (u32 i = 0; i < sums->n; i++) {
		const struct gap_sum_key *key = map__key(sums, i);
		const struct gap_sum *s = map__value(sums, i);
		struct cause_total *t = &totals[key->cause];

		if (key->device != device)
			continue;
		idle += s->ns;
		t->ns += s->ns;
		if (s->ns > t->most) {
			t->most = s->ns;
			t->of = key->of;
		}
	}
	return idle;
}

static u32 largest(const struct cause_total *totals)
{
	u32 best = 0;

	for (u32 i = 1; i < GAP_CAUSES; i++)
		if (totals[i].ns > totals[best].ns)
			best = i;
	return best;
}

/* Adds "busy 62.0% of 10.2 s; in 61% of the rest the launching thread waited for the GIL, held by decode (...)." */
static void add_device_finding(const struct gpu_report *r, struct report_output *out, u32 device)
{
	const struct gpu_device_sum *d = gpu_busy__sum(&r->busy, device);
	struct cause_total totals[GAP_CAUSES], *t;
	char label[96], time[TEXT_NUMBER], did[TEXTS_LEN + 96], part[48] = "";
	u64 idle = sum_causes(r, device, totals);
	u32 cause = largest(totals);

	t = &totals[cause];
	gpu_busy__label(&r->busy, device, label, sizeof(label));
	text__ns(time, sizeof(time), gpu_device__time(d));
	/* add_unknown_finding covers unknown causes, for all devices together */
	if (!idle || cause == GAP_UNKNOWN) {
		report_output__finding(out, "%s was busy %.1f%% of %s.", label,
				       table__percent(d->busy_ns, gpu_device__time(d)), time);
		return;
	}
	gap_cause__text(cause, texts__text(&r->gaps.texts, t->of), did, sizeof(did));
	if (t->most < t->ns - t->ns / 10)
		snprintf(part, sizeof(part), " for %.0f%% of that", table__percent(t->most, t->ns));
	report_output__finding(out, "%s was busy %.1f%% of %s. In %.0f%% of its idle time the launching thread %s%s.",
			       label, table__percent(d->busy_ns, gpu_device__time(d)), time,
			       table__percent(t->ns, idle), did, part);
}

/*
 * Adds a finding on a device without work until the end, because it hangs or the program no longer uses it: what did
 * the thread do that launched its last work?
 */
static void add_tail_finding(const struct gpu_report *r, struct report_output *out, u32 device)
{
	const struct gap_detail *t = map__find(&r->gaps.tails, &device);
	char label[96], time[TEXT_NUMBER], did[TEXTS_LEN + 96];
	u64 ns = t ? t->gap->to - t->gap->from : 0;

	if (!t || !t->n)
		return;
	gpu_busy__label(&r->busy, device, label, sizeof(label));
	text__ns(time, sizeof(time), ns);
	if (t->parts[0].cause == GAP_UNKNOWN)
		report_output__finding(out, "%s had no work in the last %s.", label, time);
	else
		report_output__finding(
			out, "%s had no work in the last %s: for %.0f%% of that the thread that launched last %s.",
			label, time, table__percent(t->parts[0].ns, ns),
			gap_cause__text(t->parts[0].cause, texts__text(&r->gaps.texts, t->parts[0].of), did,
					sizeof(did)));
}

/* Adds a finding on the families that would have recorded what is unknown. */
static void add_unknown_finding(const struct gpu_report *r, struct report_output *out)
{
	u64 idle = 0, unknown = 0, off = 0, runs = 0;
	struct cause_total totals[GAP_CAUSES];

	for (u32 i = 0; i < r->busy.devices.n; i++) {
		idle += sum_causes(r, i, totals);
		unknown += totals[GAP_UNKNOWN].ns;
		off += totals[GAP_OFF].ns;
		runs += totals[GAP_RUN].ns;
	}
	if (unknown > idle / 5)
		report_output__finding(out,
				       "What the launching threads did in %.0f%% of the idle time was not recorded: "
				       "`sonde record -t +gpu,sched,syscall,lock` records it.",
				       table__percent(unknown, idle));
	else if (off > idle / 5)
		report_output__finding(out,
				       "In %.0f%% of the idle time the launching threads waited for what was not "
				       "recorded: `sonde record -t +gpu,sched,syscall,lock` records it.",
				       table__percent(off, idle));
	else if (runs > idle / 5)
		report_output__finding(
			out,
			"In %.0f%% of the idle time the launching threads ran code that has no name here: "
			"samples name it: `sonde record -F 999`.",
			table__percent(runs, idle));
}

/* Sums kernels of one name on all devices. */
static u64 sum_kernel(const struct gpu_report *r, const char *name, u64 *works)
{
	const struct map *kernels = &r->busy.kernels;
	u64 ns = 0;

	*works = 0;
	for (u32 i = 0; i < kernels->n; i++) {
		const char *other = ((const struct gpu_kernel_key *)map__key(kernels, i))->name;
		const struct gpu_sum *s = map__value(kernels, i);

		if (other != name && (!other || !name || strcmp(other, name) != 0))
			continue;
		ns += s->ns;
		*works += s->works;
	}
	return ns;
}

static void add_kernel_finding(const struct gpu_report *r, struct report_output *out)
{
	const struct map *kernels = &r->busy.kernels;
	const struct gpu_sum *best = NULL;
	const char *name = NULL;
	char count[TEXT_NUMBER], each[TEXT_NUMBER];
	u64 all = 0, works, ns;

	for (u32 i = 0; i < kernels->n; i++) {
		const struct gpu_sum *s = map__value(kernels, i);

		all += s->ns;
		if (best && s->ns <= best->ns)
			continue;
		best = s;
		name = ((const struct gpu_kernel_key *)map__key(kernels, i))->name;
	}
	if (!all)
		return;
	ns = sum_kernel(r, name, &works);
	report_output__finding(out, "%.0f%% of all kernels' time was in %s, which ran %s time%s, %s each.",
			       table__percent(ns, all),
			       name ? gpu_model__short_name(r->busy.model, name) : "kernels without a name",
			       text__count(count, sizeof(count), works), text__s(works),
			       text__ns(each, sizeof(each), (ns + works / 2) / works));
	REPORT_FIGURES(out, FIGURE("percent", V_DBL(table__percent(ns, all))),
		       FIGURE("name", V_TEXT(name ? gpu_model__short_name(r->busy.model, name) : NULL)),
		       FIGURE("calls", V_U64(works)), FIGURE("total_ns", V_U64(ns)));
}

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
			"known, because sonde's CUPTI library is not in it. `sonde record -t +gpu -- COMMAND` loads it; `sonde doctor` says "
			"how else a process can get it.",
			names__label(r->busy.args->names, who, sizeof(who), pid, 0),
			text__count(kernels, sizeof(kernels), a->kernels + a->graphs),
			text__count(copies, sizeof(copies), a->copies + a->sets));
	}
}

/* Returns the device with the most time that is not done, n if all are. */
static u32 next_device(const struct gpu_report *r, const bool *done)
{
	const struct gpu_busy *b = &r->busy;
	u32 best = b->devices.n;

	for (u32 i = 0; i < b->devices.n; i++)
		if (!done[i] && gpu_device__time(gpu_busy__sum(b, i)) &&
		    (best == b->devices.n ||
		     gpu_device__time(gpu_busy__sum(b, i)) > gpu_device__time(gpu_busy__sum(b, best))))
			best = i;
	return best;
}

void gpu_report__add_findings(const struct gpu_report *r, struct report_output *out, u32 max)
{
	bool *done = calloc((size_t)r->busy.devices.n + 1, sizeof(*done));
	u32 i;

	for (u32 n = 0; done && n < max && (i = next_device(r, done)) < r->busy.devices.n; n++) {
		add_device_finding(r, out, i);
		add_tail_finding(r, out, i);
		done[i] = true;
	}
	free(done);
	add_unknown_finding(r, out);
	add_kernel_finding(r, out);
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
