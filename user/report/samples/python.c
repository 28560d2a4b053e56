// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Report python: self CPU time by Python function, with the C code in it (what it calls, or what the interpreter does
 * for it, such as adding integers), and total CPU time with its callees; with or without the GIL; time off the CPU. A
 * recursive function counts once per stack.
 */
#include "output/text.h"
#include "report/samples/sampled.h"

struct python_report {
	struct sampled s;
	struct map functions; /* of struct sampled_code */
	struct sampled_weight without_python; /* samples without a Python frame */
};

static const struct column columns[] = {
	{ "function", "Function", VALUE_TEXT, SHOW_PLAIN },
	{ "file", "File", VALUE_TEXT, SHOW_PLAIN },
	{ "line", "Line", VALUE_U64, SHOW_PLAIN },
	{ "self_percent", "Self %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "self_ns", "Self", VALUE_U64, SHOW_NS },
	{ "native_ns", "in C", VALUE_U64, SHOW_NS },
	{ "total_percent", "Total %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "total_ns", "Total", VALUE_U64, SHOW_NS },
	{ "samples", "Samples", VALUE_U64, SHOW_COUNT },
	{ "total_samples", "Samples, total", VALUE_U64, SHOW_NEVER },
	{ "gil_ns", "With GIL", VALUE_U64, SHOW_NS },
	{ "no_gil_ns", "Without GIL", VALUE_U64, SHOW_NS },
	{ "kernel_ns", "In the kernel", VALUE_U64, SHOW_NEVER },
	{ "off_cpu_ns", "Off CPU", VALUE_U64, SHOW_NS },
	{ "off_cpu_total_ns", "Off CPU, total", VALUE_U64, SHOW_NS },
	{ "off_waits", "Waits", VALUE_U64, SHOW_NEVER },
};

static void fill(struct python_report *p, struct table *t)
{
	const struct sampled_weight *all = &p->s.total;

	MAP_EACH(const struct sampled_code *f, &p->functions) {
		const struct stack_frame *frame = stacks__frame(p->s.stacks, f->frame);

		table__add(t, V_TEXT(*frame->name ? frame->name : "?"), V_TEXT(*frame->file ? frame->file : NULL),
			   frame->first_line ? V_U64(frame->first_line) : V_NONE,
			   V_DBL(table__percent(f->self.cpu_ns, all->cpu_ns)), V_U64(f->self.cpu_ns),
			   V_U64(f->native_ns), V_DBL(table__percent(f->total.cpu_ns, all->cpu_ns)),
			   V_U64(f->total.cpu_ns), V_U64(f->self.samples), V_U64(f->total.samples),
			   V_U64(f->self.gil_ns), V_U64(f->self.no_gil_ns), V_U64(f->self.kernel_ns),
			   V_U64(f->self.off_ns), V_U64(f->total.off_ns), V_U64(f->self.waits));
	}
	table__sort(t, p->s.total.cpu_ns ? "self_ns" : "off_cpu_ns");
}

static void add_findings(struct python_report *p, struct report_output *out)
{
	const struct sampled_weight *all = &p->s.total;
	const struct sampled_code *busy = NULL, *waits = NULL;
	char name[256];

	MAP_EACH(const struct sampled_code *f, &p->functions) {
		if (!busy || f->self.cpu_ns > busy->self.cpu_ns)
			busy = f;
		if (!waits || f->self.off_ns > waits->self.off_ns)
			waits = f;
	}
	if (busy && busy->self.cpu_ns)
		report_output__finding(out, "%.0f%% of %s of CPU time was spent in %s%s.",
				       table__percent(busy->self.cpu_ns, all->cpu_ns), TEXT_NS(all->cpu_ns),
				       stacks__function(p->s.stacks, busy->frame, name, sizeof(name)),
				       busy->native_ns * 2 > busy->self.cpu_ns ?
					       ", most of it in C (what it calls, or Python's own operations)" :
					       "");
	if (all->gil_ns + all->no_gil_ns)
		report_output__finding(out, "%.0f%% of Python's CPU time was spent with the GIL held.",
				       table__percent(all->gil_ns, all->gil_ns + all->no_gil_ns));
	if (waits && waits->self.off_ns)
		report_output__finding(out, "%s waited longest off the CPU: %s.",
				       stacks__function(p->s.stacks, waits->frame, name, sizeof(name)),
				       TEXT_NS(waits->self.off_ns));
	if (p->without_python.cpu_ns)
		report_output__note(out,
				    "%.1f%% of the CPU time was without a Python frame: `sonde report FILE stacks`.",
				    table__percent(p->without_python.cpu_ns, all->cpu_ns));
}

static int run(const struct query *args, struct report_output *out)
{
	struct table *t = REPORT_TABLE(out, "functions", "Python functions by their own CPU time", columns);
	struct python_report p = {};
	int err = sampled__read(&p.s, args);

	t->details = "native_ns off_cpu_ns no_gil_ns samples";
	t->limit = 30;
	if (!err)
		err = sampled__by_code(&p.s, false, &p.functions, &p.without_python);
	if (!err && sampled__add_notes(&p.s, args, out)) {
		fill(&p, t);
		add_findings(&p, out);
	}
	map__free(&p.functions);
	sampled__free(&p.s);
	return err;
}

REPORT(python) = {
	.name = "python",
	.doc = "Python functions: self and total CPU time, with and without the GIL, and time off the CPU",
	.kinds = "sample_cpu,sample_off",
	.run = run,
	.groups = "nvtx",
	.nvtx = NVTX_PARTS_PYTHON,
};
