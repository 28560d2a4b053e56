// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Prints the result of `sonde record`: the file, the losses, the cost. */
#include <stdio.h>
#include <stdlib.h>

#include "cmd/cmd.h"
#include "cmd/record.h"
#include "model/losses.h"
#include "output/text.h"

/* Returns why there are no events. gone: the targets had ended before tracing ran. */
static const char *why_nothing(enum end_reason reason, bool gone)
{
	if (reason != END_TARGETS)
		return "no selected process had an event of the chosen families";
	return gone ? "every process of -p ended before tracing ran" :
		      "every process of -p ended without an event of the chosen families";
}

struct loss_list {
	struct loss *list;
	u32 n;
};

static void take_loss(const struct session_loss *l, void *arg)
{
	struct loss_list *losses = arg;

	losses__add_to(&losses->list, &losses->n,
		       &(struct loss){
			       .family = l->family,
			       .object = l->object,
			       .reason = l->reason,
			       .count = l->count,
			       .first = l->first,
			       .last = l->last,
			       .recorded = l->recorded,
			       .family_name = l->family_name,
			       .path = l->path,
			       .outside = l->outside,
		       });
}

/* Prints the lines that each report of the trace has at its end. */
static void print_losses(struct session *s)
{
	struct session_times times = session__times(s);
	struct loss_times t = { times.start, times.live, times.stop };
	struct loss_list losses = {};
	char text[8192];

	session__each_loss(s, take_loss, &losses);
	for (u32 i = 0; i < losses.n; i++)
		if (*losses__line(text, sizeof(text), losses.list, losses.n, i, &t))
			cmd__error("lost %s", text);
	losses__outside_text(text, sizeof(text), losses.list, losses.n);
	if (*text)
		cmd__error("%s", text);
	losses__verdict(text, sizeof(text), losses.list, losses.n, &t);
	if (*text)
		cmd__error("%s", text);
	free(losses.list);
}

/* Formats a percentage of one CPU; one that would be rounded to 0 is printed as a bound. */
static char *cost_percent(char *buf, size_t size, const char *about, double percent)
{
	if (percent > 0 && percent < 0.01)
		snprintf(buf, size, "less than 0.01%%");
	else
		snprintf(buf, size, "%s%.2f%%", about, percent);
	return buf;
}

static void print_cost(const struct session_status *st, double wall)
{
	char others[128] = "", cost[32], own[32], range[64];

	/* Probes are attached to files, so other processes that map them hit the probes too. */
	if (st->skipped_hits)
		snprintf(others, sizeof(others),
			 " (%s not recorded: of processes that are not traced, or within another call)",
			 TEXT_COUNT(st->skipped_hits));
	fprintf(stderr, "sonde: cost: %s probe hits%s took %s of one CPU; sonde itself took %s\n", TEXT_COUNT(st->hits),
		others, cost_percent(cost, sizeof(cost), "about ", 100 * st->probes_ns / wall),
		cost_percent(own, sizeof(own), "", 100 * st->cpu_ns / wall));
	if (!st->at_tracepoints)
		return;
	if (100 * 1500 * st->at_tracepoints / wall < 0.01)
		snprintf(range, sizeof(range), "less than 0.01%%");
	else
		snprintf(range, sizeof(range), "about %.2f%% to %.2f%%", 100 * 300 * st->at_tracepoints / wall,
			 100 * 1500 * st->at_tracepoints / wall);
	fprintf(stderr, "sonde: cost: %s events of kernel tracepoints, some 0.3 to 1.5 us each, took %s of one CPU\n",
		TEXT_COUNT(st->at_tracepoints), range);
}

/* Returns the part of the recorded time in which families sched and sample measured. */
static double measured_percent(const struct session_status *st)
{
	u64 recorded = st->live_ns - st->paused_ns;

	return st->unmeasured_ns < recorded ? 100.0 - 100.0 * st->unmeasured_ns / recorded : 0;
}

void record_end__print(struct session *s, const char *path, enum end_reason reason, bool gone, bool quiet)
{
	struct session_status st;
	char paused[64] = "";
	double wall;

	session__status(s, &st);
	wall = st.wall_ns ? st.wall_ns : 1;
	if (st.paused_ns)
		snprintf(paused, sizeof(paused), " of %s", TEXT_NS(st.live_ns));
	if (st.needs_objects && !st.objects && !quiet)
		fprintf(stderr, "sonde: no process maps a library that the chosen families probe\n");
	if (!st.traced && !st.none_usable)
		fprintf(stderr, "sonde: nothing was recorded: %s\n", why_nothing(reason, gone));
	if (st.cut_off)
		fprintf(stderr, "sonde: %s: cut off after %.1f KB: what came later is lost\n", path, st.bytes / 1e3);
	else if (!quiet)
		fprintf(stderr, "sonde: %s: %llu events in %s%s, %.1f KB; %llu lost%s\n", path, st.events,
			TEXT_NS(st.live_ns - st.paused_ns), paused, st.bytes / 1e3, st.lost,
			st.traced ? "" : "; all of these events are about the recording itself");
	if (st.unmeasured_ns && !quiet)
		fprintf(stderr,
			"sonde: the scheduler and waits were recorded in %.0f%% of the time, to limit their cost to about "
			"%.3g%% of the processes' CPU time (--cost-limit)\n",
			measured_percent(&st), 100 * st.cost_limit);
	print_losses(s);
	if (!quiet)
		print_cost(&st, wall);
}
