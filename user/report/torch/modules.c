// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report modules: sampled time by nn.Module of PyTorch, by their paths and by their classes. */
#include <errno.h>

#include "model/module_path.h"
#include "output/text.h"
#include "report/samples/sampled.h"

struct node {
	struct sampled_weight self, total;
};

struct class
{
	struct sampled_weight self, total;
	const struct stack_frame *frame;
	u32 last; /* number of the last stack for which it was counted */
};

struct modules {
	struct sampled s;
	struct module_paths paths;
	struct map nodes; /* u32 path -> struct node */
	struct map classes; /* u32 code -> struct class */
	struct sampled_weight all; /* of stacks with modules */
};

/* Adds to the time of the last module of a path, for itself if it is that of the whole stack. 0 or -ENOMEM. */
static int add_module(struct modules *m, u32 path, bool is_self, const struct sampled_weight *w, u32 stack)
{
	const struct stack_frame *f = module_paths__frame(&m->paths, path);
	struct node *n = map__get(&m->nodes, &path);
	struct class *c = map__get(&m->classes, &f->code);

	if (!n || !c)
		return -ENOMEM;
	c->frame = f;
	sampled__add(&n->total, w);
	if (c->last != stack)
		sampled__add(&c->total, w);
	c->last = stack;
	if (is_self) {
		sampled__add(&n->self, w);
		sampled__add(&c->self, w);
	}
	return 0;
}

static int add_stack(struct modules *m, u32 number, u32 stack, const struct sampled_weight *w)
{
	u32 path;
	int err = module_paths__of(&m->paths, stack, &path);

	if (!err && path)
		sampled__add(&m->all, w);
	for (u32 at = path; !err && at; at = module_paths__parent(&m->paths, at))
		err = add_module(m, at, at == path, w, number);
	return err;
}

static const struct column path_columns[] = {
	{ "module", "Module", VALUE_TEXT, SHOW_PLAIN },
	{ "depth", "Depth", VALUE_U64, SHOW_NEVER },
	{ "self_percent", "Self %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "self_ns", "Self", VALUE_U64, SHOW_NS },
	{ "total_percent", "Total %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "total_ns", "Total", VALUE_U64, SHOW_NS },
	{ "off_cpu_ns", "Off CPU", VALUE_U64, SHOW_NS },
	{ "off_cpu_total_ns", "Off CPU, total", VALUE_U64, SHOW_NS },
	{ "samples", "Samples", VALUE_U64, SHOW_COUNT },
	{ "total_samples", "Samples, total", VALUE_U64, SHOW_NEVER },
};

static const struct column class_columns[] = {
	{ "class", "Class", VALUE_TEXT, SHOW_PLAIN },	 { "file", "File", VALUE_TEXT, SHOW_PLAIN },
	{ "line", "Line", VALUE_U64, SHOW_PLAIN },	 { "self_percent", "Self %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "self_ns", "Self", VALUE_U64, SHOW_NS },	 { "total_percent", "Total %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "total_ns", "Total", VALUE_U64, SHOW_NS },	 { "off_cpu_ns", "Off CPU", VALUE_U64, SHOW_NS },
	{ "samples", "Samples", VALUE_U64, SHOW_COUNT },
};

static void fill_paths(const struct modules *m, struct table *t)
{
	for (u32 i = 0; i < m->nodes.n; i++) {
		const struct node *n = map__value(&m->nodes, i);
		char buf[1024] = "";
		u32 depth = module_paths__write(&m->paths, *(const u32 *)map__key(&m->nodes, i),
						&(struct text_buffer){ .buf = buf, .size = sizeof(buf) });

		table__add(t, V_TEXT(buf), V_U64(depth), V_DBL(table__percent(n->self.cpu_ns, m->all.cpu_ns)),
			   V_U64(n->self.cpu_ns), V_DBL(table__percent(n->total.cpu_ns, m->all.cpu_ns)),
			   V_U64(n->total.cpu_ns), V_U64(n->self.off_ns), V_U64(n->total.off_ns),
			   V_U64(n->self.samples), V_U64(n->total.samples));
	}
	table__sort(t, "total_ns");
}

static void fill_classes(const struct modules *m, struct table *t)
{
	MAP_EACH(const struct class *c, &m->classes) {
		const struct stack_frame *f = c->frame;
		char buf[STACK_LABEL] = "";

		module_paths__write_class(f, &(struct text_buffer){ .buf = buf, .size = sizeof(buf) });
		table__add(t, V_TEXT(buf), V_TEXT(*f->file ? f->file : NULL),
			   f->first_line ? V_U64(f->first_line) : V_NONE,
			   V_DBL(table__percent(c->self.cpu_ns, m->all.cpu_ns)), V_U64(c->self.cpu_ns),
			   V_DBL(table__percent(c->total.cpu_ns, m->all.cpu_ns)), V_U64(c->total.cpu_ns),
			   V_U64(c->self.off_ns), V_U64(c->self.samples));
	}
	table__sort(t, "self_ns");
}

static void add_finding(const struct modules *m, struct report_output *out)
{
	const struct class *most = NULL;
	char name[STACK_LABEL] = "";

	MAP_EACH(const struct class *c, &m->classes)
		if (!most || c->self.cpu_ns > most->self.cpu_ns)
			most = c;
	if (!most || !m->all.cpu_ns)
		return;
	module_paths__write_class(most->frame, &(struct text_buffer){ .buf = name, .size = sizeof(name) });
	report_output__finding(
		out, "%.0f%% of the sampled CPU time, %s, was in forward() of modules; %.0f%% of that in %s itself.",
		table__percent(m->all.cpu_ns, m->s.total.cpu_ns), TEXT_NS(m->all.cpu_ns),
		table__percent(most->self.cpu_ns, m->all.cpu_ns), name);
	REPORT_FIGURES(out, FIGURE("forward_percent", V_DBL(table__percent(m->all.cpu_ns, m->s.total.cpu_ns))),
		       FIGURE("class", V_TEXT(name)),
		       FIGURE("self_percent", V_DBL(table__percent(most->self.cpu_ns, m->all.cpu_ns))));
}

static int run(const struct query *args, struct report_output *out)
{
	struct table *paths =
		REPORT_TABLE(out, "modules", "Modules by path, with the time of modules within", path_columns);
	struct table *classes = REPORT_TABLE(out, "classes", "Classes of modules by their own time", class_columns);
	struct modules m = {};
	int err = sampled__read(&m.s, args);

	paths->limit = classes->limit = 30;
	module_paths__init(&m.paths, m.s.stacks);
	map__init(&m.nodes, sizeof(u32), sizeof(struct node));
	map__init(&m.classes, sizeof(u32), sizeof(struct class));
	for (u32 i = 0; !err && i < m.s.by_stack.n; i++)
		err = add_stack(&m, i + 1, *(const u32 *)map__key(&m.s.by_stack, i), map__value(&m.s.by_stack, i));
	if (!err && sampled__add_notes(&m.s, args, out)) {
		fill_paths(&m, paths);
		fill_classes(&m, classes);
		add_finding(&m, out);
		if (!m.nodes.n)
			report_output__finding(out, "No sample was in forward() of a module of PyTorch.");
		else
			report_output__note(
				out,
				"Backward passes and other threads, which have no frame of forward(), are not counted.");
	}
	module_paths__free(&m.paths);
	map__free(&m.nodes);
	map__free(&m.classes);
	sampled__free(&m.s);
	return err;
}

REPORT(modules) = {
	.name = "modules",
	.doc = "nn.Modules of PyTorch by path and class: sampled time of their forward()",
	.kinds = "torch",
	.run = run,
};
