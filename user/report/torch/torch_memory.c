// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Report torch-memory: CPU memory of PyTorch's tensors, by operator and line of Python: at its peak, over time, and
 * what each step leaves allocated.
 */
#include <stdlib.h>

#include "model/stacks.h"
#include "model/torch_memory.h"
#include "output/text.h"
#include "report/report.h"

struct memory_report {
	const struct query *args;
	struct torch_memory_sums *memory;
	struct stacks *stacks;
};

static const struct column process_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "peak_bytes", "Peak", VALUE_U64, SHOW_BYTES },
	{ "peak_ns", "Peak at (s)", VALUE_S64, SHOW_SECONDS },
	{ "live_bytes", "Live at the end", VALUE_U64, SHOW_BYTES },
	{ "live", "Blocks", VALUE_U64, SHOW_COUNT },
	{ "allocations", "Allocated", VALUE_U64, SHOW_COUNT },
	{ "releases", "Freed", VALUE_U64, SHOW_COUNT },
	{ "allocated_bytes", "In all", VALUE_U64, SHOW_BYTES },
	{ "unknown_releases", "Unknown blocks freed", VALUE_U64, SHOW_COUNT },
};

static const struct column operator_columns[] = {
	{ "name", "Name", VALUE_TEXT, SHOW_PLAIN },
	{ "self_memory_bytes", "Self memory", VALUE_S64, SHOW_BYTES },
	{ "allocated_bytes", "Allocated", VALUE_U64, SHOW_BYTES },
	{ "freed_bytes", "Freed", VALUE_U64, SHOW_BYTES },
	{ "allocations", "Allocations", VALUE_U64, SHOW_COUNT },
	{ "releases", "Releases", VALUE_U64, SHOW_COUNT },
};

static const struct column site_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Operator", VALUE_TEXT, SHOW_PLAIN },
	{ "line", "Line", VALUE_TEXT, SHOW_NEVER },
	{ "peak_bytes", "At the peak", VALUE_U64, SHOW_BYTES },
	{ "peak_percent", "of it (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "live_bytes", "Live at the end", VALUE_U64, SHOW_BYTES },
	{ "live", "Blocks", VALUE_U64, SHOW_COUNT },
	{ "allocations", "Allocated", VALUE_U64, SHOW_COUNT },
	{ "allocated_bytes", "In all", VALUE_U64, SHOW_BYTES },
};

static const struct column growth_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Operator", VALUE_TEXT, SHOW_PLAIN },
	{ "line", "Line", VALUE_TEXT, SHOW_NEVER },
	{ "step_bytes", "Left by each step", VALUE_U64, SHOW_BYTES },
	{ "left_bytes", "Left by all steps", VALUE_U64, SHOW_BYTES },
	{ "left", "Blocks", VALUE_U64, SHOW_COUNT },
	{ "leaving_steps", "Steps that left some", VALUE_U64, SHOW_COUNT },
	{ "steps", "of steps", VALUE_U64, SHOW_COUNT },
};

static const struct column timeline_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "start_ns", "At (s)", VALUE_S64, SHOW_SECONDS },
	{ "live_bytes", "Live", VALUE_U64, SHOW_BYTES },
};

static const char *name_of(const struct memory_report *r, u32 name)
{
	return name ? torch__name(r->memory->torch, name) : NULL;
}

/* Writes the user's line in the stack. NULL: not known. */
static const char *line_of(const struct memory_report *r, u32 stack, char *buf, size_t size)
{
	u32 top = stacks__top_user(r->stacks, stack);

	return stacks__frame(r->stacks, top) ? stacks__label(r->stacks, top, buf, size) : NULL;
}

static void fill_processes(const struct memory_report *r, struct table *t, struct table *timeline)
{
	MAP_EACH_ENTRY(const struct torch_memory_sum *s, const u32 *pid, &r->memory->sums) {
		table__add(t, V_U64(*pid), V_TEXT(NAMES_TITLE(r->args->names, *pid, 0)), V_U64(s->peak),
			   s->peak ? report__moment(r->args, s->peak_time) : V_NONE, V_U64(s->live), V_U64(s->live_n),
			   V_U64(s->allocations), V_U64(s->releases), V_U64(s->bytes), V_U64(s->unknown_releases));
		for (u32 k = 0; s->slots && k < TORCH_MEMORY_SLOTS; k++)
			if (!k || s->slots[k] != s->slots[k - 1])
				table__add(timeline, V_U64(*pid),
					   report__moment(r->args, r->memory->first + k * r->memory->slot_ns),
					   V_U64(s->slots[k]));
	}
	table__sort(t, "peak_bytes");
}

static void fill_operators(const struct memory_report *r, struct table *t)
{
	for (u32 i = 0; i < r->memory->operators.n; i++) {
		const struct torch_memory_operator *o = map__value(&r->memory->operators, i);

		table__add(t, V_TEXT(name_of(r, *(const u32 *)map__key(&r->memory->operators, i))),
			   V_S64((s64)(o->allocated - o->freed)), V_U64(o->allocated), V_U64(o->freed),
			   V_U64(o->allocations), V_U64(o->releases));
	}
	table__sort(t, "allocated_bytes");
	t->limit = 20;
}

static void fill_sites(const struct memory_report *r, struct table *t)
{
	char label[STACK_LABEL];

	MAP_EACH_ENTRY(const struct torch_memory_site *site, const struct torch_memory_site_key *key,
		       &r->memory->sites) {
		const struct torch_memory_sum *s = map__find(&r->memory->sums, &key->pid);
		const char *line = line_of(r, key->stack, label, sizeof(label));

		table__add(t, V_U64(key->pid), V_TEXT(name_of(r, key->name)), V_TEXT(line), V_U64(site->peak),
			   V_DBL(table__percent(site->peak, s ? s->peak : 0)), V_U64(site->live), V_U64(site->live_n),
			   V_U64(site->allocations), V_U64(site->bytes));
		if (line)
			table__show(t, "line", SHOW_PLAIN);
	}
	table__sort(t, "peak_bytes");
	t->limit = 20;
}

static void add_growth(const struct memory_report *r, const struct torch_loop *l, const struct torch_growths *g,
		       struct table *t, struct report_output *out)
{
	const struct torch_growth *most = torch_growths__main(g);
	char label[STACK_LABEL], text[STACK_LABEL + 256], who[64];

	for (u32 i = 0; i < g->n; i++) {
		const struct torch_growth *site = &g->list[i];
		const struct torch_memory_site_key *key = map__key(&r->memory->sites, site->site);
		const char *line = line_of(r, key->stack, label, sizeof(label)), *name = name_of(r, key->name);

		table__add(t, V_U64(l->pid), V_TEXT(name), V_TEXT(line), V_U64(site->bytes / g->steps),
			   V_U64(site->bytes), V_U64(site->blocks), V_U64(site->steps), V_U64(g->steps));
		if (line)
			table__show(t, "line", SHOW_PLAIN);
		if (site != most)
			continue;
		report_output__finding(out, "%s: %s.", names__label(r->args->names, who, sizeof(who), l->pid, 0),
				       torch_growths__text(g, r->memory, line, text, sizeof(text)));
		REPORT_FIGURES(out, FIGURE("pid", V_U64(l->pid)), FIGURE("step_bytes", V_U64(g->bytes / g->steps)),
			       FIGURE("steps", V_U64(g->steps)), FIGURE("name", V_TEXT(name)));
	}
}

static int fill_growth(const struct memory_report *r, struct table *t, struct report_output *out)
{
	struct torch_growths growths;
	struct torch_steps *steps;
	int err = torch_steps__new(&steps, r->args);

	for (u32 i = 0; !err && i < steps->n; i++) {
		err = torch_memory__growth(r->memory, &steps->loops[i], &growths);
		if (!err)
			add_growth(r, &steps->loops[i], &growths, t, out);
		free(growths.list);
	}
	torch_steps__free(steps);
	t->limit = 20;
	return err;
}

/* Of the process with the largest peak; the table has the others. */
static void add_peak(const struct memory_report *r, struct report_output *out)
{
	const struct torch_memory_sum *most = NULL;
	char who[64];
	const char *name = NULL;
	u64 bytes = 0;
	u32 pid = 0;

	for (u32 i = 0; i < r->memory->sums.n; i++) {
		const struct torch_memory_sum *s = map__value(&r->memory->sums, i);

		if (most && most->peak >= s->peak)
			continue;
		most = s;
		pid = *(const u32 *)map__key(&r->memory->sums, i);
	}
	if (!most || !most->peak)
		return;
	MAP_EACH_ENTRY(const struct torch_memory_site *site, const struct torch_memory_site_key *key,
		       &r->memory->sites) {
		if (key->pid != pid || site->peak <= bytes)
			continue;
		bytes = site->peak;
		name = name_of(r, key->name);
	}
	report_output__finding(
		out,
		"%s had at most %s of CPU memory in tensors, at %s s; %.0f%% of that was allocated by %s. At the end it had %s.",
		names__label(r->args->names, who, sizeof(who), pid, 0), TEXT_BYTES(most->peak),
		TEXT_SECONDS(most->peak_time, r->args->start, 3), table__percent(bytes, most->peak),
		name ? name : "code that is in no operator", TEXT_BYTES(most->live));
	REPORT_FIGURES(out, FIGURE("pid", V_U64(pid)), FIGURE("peak_bytes", V_U64(most->peak)),
		       FIGURE("name", V_TEXT(name)), FIGURE("live_bytes", V_U64(most->live)));
}

static void add_notes(const struct memory_report *r, struct report_output *out)
{
	u64 unknown = 0;

	for (u32 i = 0; i < r->memory->sums.n; i++)
		unknown += ((const struct torch_memory_sum *)map__value(&r->memory->sums, i))->unknown_releases;
	report_output__note(
		out,
		"Memory whose allocation is not in the trace (from before the recording, from a pause, or lost) is in none of these figures; %s such block%s %s freed.",
		unknown ? TEXT_COUNT(unknown) : "no", text__s(unknown), unknown == 1 ? "was" : "were");
	if (r->memory->sums.n > TORCH_MEMORY_LINES)
		report_output__note(out, "The time line is of the first %u processes.", TORCH_MEMORY_LINES);
	if (r->memory->has_forgotten)
		report_output__note(
			out,
			"The recording was paused. Blocks that were allocated before a pause count as freed at its beginning, because frees in a pause are not recorded. So growth is not stated.");
	if (trace__has(r->args->trace, "gpu_memory") || trace__has(r->args->trace, "cuda_alloc"))
		report_output__note(
			out, "Report memory has the memory of GPUs, by what PyTorch's allocator takes from CUDA.");
}

static int fill(struct memory_report *r, struct report_output *out)
{
	struct table *processes = REPORT_TABLE(out, "processes", "By process", process_columns);
	struct table *sites =
		REPORT_TABLE(out, "sites", "Memory by operator, without operators that only allocate", site_columns);
	struct table *operators =
		REPORT_TABLE(out, "operators", "What operators allocated and freed themselves", operator_columns);
	struct table *growth = REPORT_TABLE(out, "growth", "What steps left allocated at the end", growth_columns);
	struct table *timeline = REPORT_MACHINE_TABLE(
		out, "timeline", "The most memory in each of 1,000 intervals, where it differs from the one before",
		timeline_columns);

	fill_processes(r, processes, timeline);
	fill_sites(r, sites);
	fill_operators(r, operators);
	add_peak(r, out);
	add_notes(r, out);
	return fill_growth(r, growth, out);
}

static int run(const struct query *args, struct report_output *out)
{
	struct memory_report r = { .args = args };
	int err = torch_memory__new(&r.memory, args);

	if (!err)
		err = stacks__load(&r.stacks, args->trace);
	if (!err && !r.memory->sums.n) {
		report__nothing(args, out, "No memory of a tensor was recorded", "torch");
		if (query__has_family(args, "torch"))
			report_output__finding(out, "`sonde record -t +torch --torch=all` records it.");
	} else if (!err) {
		err = fill(&r, out);
	}
	stacks__free(r.stacks);
	torch_memory__free(r.memory);
	return err;
}

REPORT(torch_memory) = {
	.name = "torch-memory",
	.doc = "CPU memory of PyTorch's tensors by operator and line: peak, time line, growth over steps",
	.kinds = "torch_alloc",
	.run = run,
};
