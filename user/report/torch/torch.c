// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Report torch: PyTorch's operators, backward nodes and ranges by name, as torch.profiler's key_averages() has them:
 * self time is without the calls within, total time is with them, so that total times of nested calls overlap.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/stacks.h"
#include "model/texts.h"
#include "model/torch_modules.h"
#include "output/text.h"
#include "report/report.h"
#include "report/torch/recorded_steps.h"
#include "util/map.h"
#include "util/saturate.h"

/* A range and an operator may have one name. */
struct name {
	u32 number, kind;
	u32 group; /* by the grouping; 0: not known, or not grouped */
};

struct sums {
	u64 calls, unwound;
	u64 self_ns, total_ns, max_ns;
	u64 self_device_ns, device_ns;
	s64 self_bytes, bytes;
	u64 flops, flops_ns, flops_calls; /* of the calls whose operations are counted */
	u64 flops_unknown; /* calls whose operations could not be counted */
};

struct torch_report;

/* What --group-by groups by, besides the name */
struct grouping {
	const char *name;
	const char *column;
	/* Sets the call's group; 0: not known. Returns 0 or -ENOMEM. */
	int (*set_group)(struct torch_report *r, const struct torch_span *c, u32 *group);
	/* Returns the group's text, possibly in buf; NULL: not known. */
	const char *(*group_text)(const struct torch_report *r, u32 group, char *buf, size_t size);
	const char *missing; /* the first line if no call has a group: how to record groups */
};

struct process {
	u64 calls; /* of operators */
	u64 nodes;
	u64 outer_ns; /* of calls that are in no other, within the selected time */
	u64 self_ns, self_device_ns;
};

struct torch_report {
	const struct query *args;
	const struct grouping *grouping; /* NULL: by name alone */
	struct torch *torch;
	struct stacks *stacks;
	struct torch_modules modules;
	struct map names; /* struct name -> struct sums */
	struct map processes; /* u32 pid -> struct process */
	u64 self_ns; /* with that of ranges */
	u64 calls_ns; /* without it */
	u64 self_device_ns;
	u64 flops; /* of calls that are in no other */
};

static void add(struct sums *s, const struct torch_span *c, const struct torch_span *parent)
{
	s->calls++;
	s->unwound += c->is_unwound;
	s->self_ns += c->self_ns;
	s->total_ns += c->total_ns;
	s->max_ns = c->total_ns > s->max_ns ? c->total_ns : s->max_ns;
	s->self_device_ns += c->self_device_ns;
	s->device_ns += c->device_ns;
	s->self_bytes = (s64)((u64)s->self_bytes + (u64)c->self_bytes);
	s->bytes = (s64)((u64)s->bytes + (u64)c->bytes);
	if (c->has_flops == FLOPS_COUNTED) {
		s->flops = saturate__sum(s->flops, c->flops);
		s->flops_ns += c->total_ns;
		s->flops_calls++;
	}
	/* unless those of the call around it are counted */
	s->flops_unknown += c->has_flops == FLOPS_UNKNOWN && !(parent && parent->has_flops == FLOPS_COUNTED);
}

static int on_call(const struct torch_span *c, const struct torch_span *parent, void *arg)
{
	struct torch_report *r = arg;
	struct process *p = map__get(&r->processes, &c->pid);
	struct name name = { c->name, c->kind, 0 };
	struct sums *s;

	if (r->grouping && r->grouping->set_group(r, c, &name.group))
		return -ENOMEM;
	s = map__get(&r->names, &name);
	if (!p || !s)
		return -ENOMEM;
	add(s, c, parent);
	p->calls += c->kind == TORCH_OPERATOR;
	p->nodes += c->kind == TORCH_NODE;
	p->outer_ns += parent ? 0 : c->outer_ns;
	p->self_ns += c->self_ns;
	p->self_device_ns += c->self_device_ns;
	r->self_ns += c->self_ns;
	r->calls_ns += c->kind == TORCH_RANGE ? 0 : c->self_ns;
	r->self_device_ns += c->self_device_ns;
	r->flops = saturate__sum(r->flops, parent ? 0 : c->outer_flops);
	return 0;
}

static const struct column columns[] = {
	{ "name", "Name", VALUE_TEXT, SHOW_PLAIN },
	{ "kind", "Kind", VALUE_TEXT, SHOW_NEVER },
	{ "shapes", "Shapes", VALUE_TEXT, SHOW_NEVER },
	{ "stack", "Stack", VALUE_TEXT, SHOW_NEVER },
	{ "module", "Module", VALUE_TEXT, SHOW_NEVER },
	{ "self_percent", "Self %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "self_ns", "Self", VALUE_U64, SHOW_NS },
	{ "total_percent", "Total %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "total_ns", "Total", VALUE_U64, SHOW_NS },
	{ "avg_ns", "Avg", VALUE_DOUBLE, SHOW_NS },
	{ "max_ns", "Max", VALUE_U64, SHOW_NEVER },
	{ "self_gpu_ns", "Self on GPU", VALUE_U64, SHOW_NEVER },
	{ "gpu_ns", "On GPU", VALUE_U64, SHOW_NEVER },
	{ "self_memory_bytes", "Self memory", VALUE_S64, SHOW_NEVER },
	{ "net_memory_bytes", "Memory", VALUE_S64, SHOW_NEVER },
	{ "flop", "GFLOP", VALUE_U64, SHOW_NEVER },
	{ "flop_per_s", "GFLOP/s", VALUE_DOUBLE, SHOW_NEVER },
	{ "flop_unknown_calls", "Calls not counted", VALUE_U64, SHOW_NEVER },
	{ "calls", "Calls", VALUE_U64, SHOW_COUNT },
	{ "unwound", "By exception", VALUE_U64, SHOW_NEVER },
};

static const struct column process_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "calls", "Operators", VALUE_U64, SHOW_COUNT },
	{ "nodes", "Backward nodes", VALUE_U64, SHOW_COUNT },
	{ "self_ns", "Self", VALUE_U64, SHOW_NS },
	{ "time_percent", "of the time (%)", VALUE_DOUBLE, SHOW_PERCENT },
};

static const struct column module_columns[] = {
	{ "module", "Module", VALUE_TEXT, SHOW_PLAIN }, { "self_percent", "Self %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "self_ns", "Self", VALUE_U64, SHOW_NS },	{ "total_percent", "Total %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "total_ns", "Total", VALUE_U64, SHOW_NS },	{ "backward_ns", "of that backward", VALUE_U64, SHOW_NS },
	{ "calls", "Calls", VALUE_U64, SHOW_COUNT },
};

static const char *const kinds[] = { [TORCH_OPERATOR] = "operator", [TORCH_NODE] = "node", [TORCH_RANGE] = "range" };

static int shapes_of(struct torch_report *r, const struct torch_span *c, u32 *group)
{
	*group = c->shapes;
	return 0;
}

static const char *shapes_text(const struct torch_report *r, u32 group, char *buf, size_t size)
{
	return torch__shapes(r->torch, group);
}

static int stack_of(struct torch_report *r, const struct torch_span *c, u32 *group)
{
	*group = c->stack;
	return 0;
}

static const char *stack_text(const struct torch_report *r, u32 group, char *buf, size_t size)
{
	return stacks__frame(r->stacks, group) && stacks__folded(r->stacks, group, buf, size) ? buf : NULL;
}

static int module_of(struct torch_report *r, const struct torch_span *c, u32 *group)
{
	return torch_modules__add(&r->modules, c, group);
}

static const char *module_text(const struct torch_report *r, u32 group, char *buf, size_t size)
{
	struct text_buffer text = { .buf = buf, .size = size };

	module_paths__write(&r->modules.paths, group, &text);
	return buf;
}

static const struct grouping groupings[] = {
	{ "shape", "shapes", shapes_of, shapes_text,
	  "No sizes of tensors were recorded: `sonde record -t +torch --torch=shapes` records them." },
	{ "stack", "stack", stack_of, stack_text,
	  "No stacks were recorded with PyTorch's calls: `sonde record -t +torch --torch=stacks` records them." },
	{ "module", "module", module_of, module_text,
	  "No call has a stack with forward() of a module: `sonde record -t +torch --torch=stacks` records stacks." },
};

static const struct grouping *grouping_of(const char *name)
{
	for (u32 i = 0; name && i < ARRAY_LEN(groupings); i++)
		if (!strcmp(groupings[i].name, name))
			return &groupings[i];
	return NULL;
}

/* Returns the value of a column that one of the groupings fills. */
static struct value group_value(const struct torch_report *r, const char *column, u32 group, char *buf, size_t size)
{
	bool is_grouped = r->grouping && !strcmp(r->grouping->column, column);

	return V_TEXT(is_grouped && group ? r->grouping->group_text(r, group, buf, size) : NULL);
}

static void show_groups(const struct torch_report *r, struct table *t, struct report_output *out)
{
	bool has_group = false;

	if (!r->grouping || !r->names.n)
		return;
	for (u32 i = 0; i < r->names.n; i++)
		has_group |= ((const struct name *)map__key(&r->names, i))->group != 0;
	if (has_group)
		table__show(t, r->grouping->column, SHOW_PLAIN);
	else
		report_output__finding(out, "%s", r->grouping->missing);
}

static void fill(struct torch_report *r, struct table *t)
{
	char shapes[TEXTS_LEN], stack[4096], module[1024];
	const struct torch_coverage *covers = torch__coverage(r->torch);

	MAP_EACH_ENTRY(const struct sums *s, const struct name *name, &r->names)
		table__add(t, V_TEXT(torch__name(r->torch, name->number)), V_TEXT(kinds[name->kind]),
			   group_value(r, "shapes", name->group, shapes, sizeof(shapes)),
			   group_value(r, "stack", name->group, stack, sizeof(stack)),
			   group_value(r, "module", name->group, module, sizeof(module)),
			   V_DBL(table__percent(s->self_ns, r->self_ns)), V_U64(s->self_ns),
			   V_DBL(table__percent(s->total_ns, r->self_ns)), V_U64(s->total_ns),
			   V_DBL((double)s->total_ns / (double)s->calls), V_U64(s->max_ns),
			   covers->has_device ? V_U64(s->self_device_ns) : V_NONE,
			   covers->has_device ? V_U64(s->device_ns) : V_NONE,
			   covers->has_memory ? V_S64(s->self_bytes) : V_NONE,
			   covers->has_memory ? V_S64(s->bytes) : V_NONE, s->flops_calls ? V_U64(s->flops) : V_NONE,
			   s->flops_ns ? V_DBL((double)s->flops * 1e9 / (double)s->flops_ns) : V_NONE,
			   covers->has_shapes ? V_U64(s->flops_unknown) : V_NONE, V_U64(s->calls), V_U64(s->unwound));
	if (covers->has_device) {
		table__show(t, "self_gpu_ns", SHOW_NS);
		table__show(t, "gpu_ns", SHOW_NS);
	}
	if (covers->has_memory) {
		table__show(t, "self_memory_bytes", SHOW_BYTES);
		table__show(t, "net_memory_bytes", SHOW_BYTES);
	}
	if (covers->has_shapes) {
		table__show(t, "flop", SHOW_GIGA);
		table__show(t, "flop_per_s", SHOW_GIGA);
	}
	if (covers->unwound)
		table__show(t, "unwound", SHOW_COUNT);
	table__sort(t, "self_ns");
	t->limit = 40;
}

static void fill_modules(const struct torch_report *r, struct table *t)
{
	char module[1024];

	MAP_EACH_ENTRY(const struct torch_module_sum *s, const u32 *path, &r->modules.sums)
		table__add(t, V_TEXT(module_text(r, *path, module, sizeof(module))),
			   V_DBL(table__percent(s->self_ns, r->calls_ns)), V_U64(s->self_ns),
			   V_DBL(table__percent(s->total_ns, r->calls_ns)), V_U64(s->total_ns), V_U64(s->backward_ns),
			   V_U64(s->calls));
	table__sort(t, "total_ns");
	t->limit = 40;
}

/* The selected time without that in which only ranges of the process were recorded */
static u64 recorded_ns(const struct torch_report *r, u32 pid)
{
	u64 all = query__duration(r->args), rests = torch_rests__sum(torch__rests(r->torch), r->args, pid);

	return all > rests ? all - rests : 0;
}

static void fill_processes(struct torch_report *r, struct table *t)
{
	MAP_EACH_ENTRY(const struct process *p, const u32 *pid, &r->processes)
		table__add(t, V_U64(*pid), V_TEXT(NAMES_TITLE(r->args->names, *pid, 0)), V_U64(p->calls),
			   V_U64(p->nodes), V_U64(p->self_ns),
			   V_DBL(table__percent(p->outer_ns, recorded_ns(r, *pid))));
	table__sort(t, "self_ns");
	t->limit = 15;
}

/*
 * Returns the name with most time on the GPU, else of the operators and nodes with most of their own; NULL: there is
 * none.
 */
static const struct sums *largest(const struct torch_report *r, bool on_gpu, u32 *name)
{
	const struct sums *most = NULL;

	MAP_EACH_ENTRY(const struct sums *s, const struct name *key, &r->names) {
		u64 ns = on_gpu ? s->self_device_ns : s->self_ns;

		if (key->kind == TORCH_RANGE || !ns || (most && ns <= (on_gpu ? most->self_device_ns : most->self_ns)))
			continue;
		most = s;
		*name = key->number;
	}
	return most;
}

static void add_findings(const struct torch_report *r, struct report_output *out)
{
	const struct torch_coverage *covers = torch__coverage(r->torch);
	const struct sums *most;
	u32 name;

	most = largest(r, false, &name);
	if (most) {
		report_output__finding(
			out,
			"%s call%s of PyTorch operators and backward nodes took %s; of these %s itself took longest: %s (%.1f%% of the time of calls and ranges), %s call%s of %s.",
			TEXT_COUNT(covers->calls + covers->nodes), text__s(covers->calls + covers->nodes),
			TEXT_NS(r->calls_ns), torch__name(r->torch, name), TEXT_NS(most->self_ns),
			table__percent(most->self_ns, r->self_ns), TEXT_COUNT(most->calls), text__s(most->calls),
			TEXT_NS(most->self_ns / most->calls));
		REPORT_FIGURES(out, FIGURE("calls", V_U64(covers->calls + covers->nodes)),
			       FIGURE("self_ns", V_U64(r->calls_ns)),
			       FIGURE("name", V_TEXT(torch__name(r->torch, name))),
			       FIGURE("self_percent", V_DBL(table__percent(most->self_ns, r->self_ns))));
	}
	most = largest(r, true, &name);
	if (most)
		report_output__finding(out,
				       "What they launched took %s on GPUs; %.1f%% of that was launched by %s itself.",
				       TEXT_NS(r->self_device_ns),
				       table__percent(most->self_device_ns, r->self_device_ns),
				       torch__name(r->torch, name));
}

static void add_flops(const struct torch_report *r, struct report_output *out)
{
	u64 rests = r->processes.n == 1 ? torch__rests(r->torch)->ns : 0;
	double per_s = (double)r->flops * 1e9 / (double)(query__duration(r->args) - rests),
	       peak = r->args->peak_tflops * 1e12;
	char part[64] = "";

	if (!r->flops)
		return;
	if (peak > 0)
		snprintf(part, sizeof(part), ", %.2f%% of the peak of %.6g TFLOP/s", 100 * per_s / peak, peak / 1e12);
	report_output__finding(
		out,
		"By the sizes of their tensors these calls did %.3f GFLOP (10^9 floating-point operations), %.3f GFLOP/s%s.",
		(double)r->flops / 1e9, per_s / 1e9, part);
	REPORT_FIGURES(out, FIGURE("flop", V_U64(r->flops)), FIGURE("flop_per_s", V_DBL(per_s)));
	if (peak > 0)
		REPORT_FIGURES(out, FIGURE("peak_percent", V_DBL(100 * per_s / peak)));
}

/* States for which calls the number of operations is missing, of the operator with most such calls. */
static void add_unknown_flops(const struct torch_report *r, struct report_output *out)
{
	u64 unknown = 0, most = 0;
	const char *name = "";

	for (u32 i = 0; i < r->names.n; i++) {
		const struct sums *s = map__value(&r->names, i);

		unknown += s->flops_unknown;
		if (s->flops_unknown <= most)
			continue;
		most = s->flops_unknown;
		name = torch__name(r->torch, ((const struct name *)map__key(&r->names, i))->number);
	}
	if (unknown)
		report_output__note(
			out,
			"The floating-point operations of %s call%s are not counted (most are of %s): the sizes of their tensors are not recorded.",
			TEXT_COUNT(unknown), text__s(unknown), name);
}

static void add_notes(const struct torch_report *r, struct report_output *out)
{
	const struct torch_coverage *covers = torch__coverage(r->torch);

	if (!r->names.n)
		return;
	if (covers->is_corrected)
		report_output__note(out, "The measured cost of %s, %s in total, is subtracted from these times.",
				    torch__rests(r->torch)->by_shim ? "recording calls in the process" :
								      "the probes at the entries and ends of calls",
				    TEXT_NS(covers->cost_ns));
	else if (torch__rests(r->torch)->by_shim)
		report_output__note(out, "Times include about 0.1 us for each call within, recorded or not.");
	else
		report_output__note(out, "Times include the cost of the probes, which the trace does not state.");
	add_unknown_flops(r, out);
	if (r->modules.dropped)
		report_output__note(
			out,
			"It is not known to which modules %s backward node%s belong%s: the report keeps at most %s nodes.",
			TEXT_COUNT(r->modules.dropped), text__s(r->modules.dropped), r->modules.dropped == 1 ? "s" : "",
			TEXT_COUNT(TORCH_MODULE_NODES_MAX));
	if (covers->merged)
		report_output__note(
			out,
			"%s call%s the only call within a call of the same name: the two count as one, as in torch.profiler.",
			TEXT_COUNT(covers->merged), covers->merged == 1 ? " was" : "s were");
	if (covers->launches_dropped)
		report_output__note(
			out,
			"%s launch%s of work on GPUs came after the part that the report reads: no call has the time of this work.",
			TEXT_COUNT(covers->launches_dropped), covers->launches_dropped == 1 ? "" : "es");
	if (covers->open)
		report_output__note(
			out, "%llu call%s had not ended when the recording ended: their time until then is counted.",
			covers->open, text__s(covers->open));
}

static int on_dropped(const struct rows *rows, void *arg)
{
	u64 *dropped = arg;

	ROWS_EACH(v, rows)
		*dropped += (u64)view__get(&v, "records");
	return 0;
}

static int run(const struct query *args, struct report_output *out)
{
	struct torch_report r = { .args = args, .grouping = grouping_of(args->group_by) };
	bool by_module = r.grouping && r.grouping->set_group == module_of;
	struct table *modules =
		by_module ? REPORT_TABLE(out, "modules", "By module, with modules within", module_columns) : NULL;
	struct table *operators =
		REPORT_TABLE(out, "operators", "Operators, backward nodes and ranges by name", columns);
	struct table *processes = REPORT_TABLE(out, "processes", "By process", process_columns);
	u64 dropped = 0;
	int err;

	map__init(&r.names, sizeof(struct name), sizeof(struct sums));
	map__init(&r.processes, sizeof(u32), sizeof(struct process));
	err = torch__new(&r.torch, args);
	if (!err && r.grouping && r.grouping->set_group != shapes_of)
		err = stacks__load(&r.stacks, args->trace);
	if (!err && by_module)
		err = torch_modules__read(&r.modules, args, r.stacks);
	if (!err)
		err = torch__read(r.torch, on_call, &r) ?:
							  query__read_kind(args, "torch_dropped", on_dropped, &dropped);
	if (!err && by_module)
		err = torch_modules__finish(&r.modules);
	if (!err) {
		if (modules)
			fill_modules(&r, modules);
		fill(&r, operators);
		show_groups(&r, operators, out);
		fill_processes(&r, processes);
		add_findings(&r, out);
		recorded_steps__add(torch__rests(r.torch), args, out);
		add_flops(&r, out);
		add_notes(&r, out);
		if (dropped)
			report_output__note(out, "%s call%s had no room in the process and are lost.",
					    TEXT_COUNT(dropped), text__s(dropped));
		if (!r.names.n)
			report__nothing(args, out, "No call of PyTorch was recorded", "torch");
	}
	torch__free(r.torch);
	torch_modules__free(&r.modules);
	stacks__free(r.stacks);
	map__free(&r.names);
	map__free(&r.processes);
	return err;
}

REPORT(torch) = {
	.name = "torch",
	.doc = "PyTorch's operators and backward nodes by name: self and total time, GPU time, memory, calls",
	.kinds = "torch",
	.run = run,
	.summary = 2,
	.groups = "shape,stack,module",
	.takes_peak = true,
};
