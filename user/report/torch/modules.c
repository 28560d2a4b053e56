// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Report modules: sampled time by nn.Module of PyTorch. A module is on a stack if its forward() is, which
 * Module._call_impl() or a hook's wrapper called. Its name is that of the class that defines this forward(): modules of
 * one class at the same place in the path are one row.
 */
#include <errno.h>
#include <string.h>

#include "output/text.h"
#include "report/samples/sampled.h"
#include "util/path.h"

/* A path of modules: its last one, and the path without it */
struct node_key {
	u32 parent; /* index plus one; 0: none */
	u32 code; /* of the function forward() */
};

struct node {
	struct sampled_weight self, total;
	u32 number; /* its index plus one */
	u32 frame; /* one of its frames, for its name */
};

struct class
{
	struct sampled_weight self, total;
	u32 frame;
	u32 last; /* number of the last stack for which it was counted */
};

struct modules {
	struct sampled s;
	struct map nodes; /* struct node_key -> struct node */
	struct map classes; /* u32 code -> struct class */
	struct sampled_weight all; /* of stacks with modules */
};

/* Does nn.Module call forward() here? Decorators and wrappers of libraries may be between the two. */
static bool calls_forward(const struct stack_frame *f)
{
	return path__ends_with(f->file, "/torch/nn/modules/module.py") &&
	       (strstr(f->name, "_call_impl") || path__ends_with(f->name, "_slow_forward"));
}

/* Older Pythons have no qualified names. A function within a function is a wrapper. */
static bool is_forward(const struct stack_frame *f)
{
	return !strcmp(f->name, "forward") ||
	       (path__ends_with(f->name, ".forward") && !path__ends_with(f->name, "<locals>.forward"));
}

/* Adds to the time of the last module of a path; *path: number of the path without it, then with it. 0 or -ENOMEM. */
static int add_module(struct modules *m, u32 *path, u32 frame, const struct sampled_weight *w, u32 stack)
{
	const struct stack_frame *f = stacks__frame(m->s.stacks, frame);
	struct node_key key = { *path, f->code };
	struct node *n = map__get(&m->nodes, &key);
	struct class *c = map__get(&m->classes, &f->code);

	if (!n || !c)
		return -ENOMEM;
	/* the entries of a map are in order of insertion */
	if (!n->number)
		n->number = m->nodes.n;
	n->frame = c->frame = frame;
	sampled__add(&n->total, w);
	if (c->last != stack)
		sampled__add(&c->total, w);
	c->last = stack;
	*path = n->number;
	return 0;
}

static const struct node_key *key_of(const struct modules *m, u32 path)
{
	return map__key(&m->nodes, path - 1);
}

static int add_stack(struct modules *m, u32 number, u32 stack, const struct sampled_weight *w)
{
	bool is_called = false;
	u32 n, path = 0;
	const u32 *frames = sampled__path(&m->s, stack, &n);

	for (u32 i = 0; i < n; i++) {
		const struct stack_frame *f = stacks__frame(m->s.stacks, frames[i]);

		if (f->kind != FRAME_PYTHON)
			continue;
		if (calls_forward(f)) {
			is_called = true;
		} else if (is_called && is_forward(f)) {
			is_called = false;
			if (add_module(m, &path, frames[i], w, number))
				return -ENOMEM;
		}
	}
	if (!path)
		return 0;
	sampled__add(&((struct node *)map__value(&m->nodes, path - 1))->self, w);
	sampled__add(&((struct class *)map__find(&m->classes, &key_of(m, path)->code))->self, w);
	sampled__add(&m->all, w);
	return 0;
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

/* "main.<locals>.Net.forward" is "Net". A name without a class is that of the file: "forward (net.py:12)". */
static void write_class(const struct stack_frame *f, struct text_buffer *text)
{
	const char *name = f->name, *end = strrchr(name, '.'), *local = NULL;

	if (!end) {
		text__add(text, "%s (%s:%u)", name, path__file_name(f->file), f->first_line);
		return;
	}
	for (const char *at = name; (at = strstr(at, "<locals>.")) != NULL; at++)
		local = at + strlen("<locals>.");
	name = local && local < end ? local : name;
	text__add(text, "%.*s", (int)(end - name), name);
}

#define PATH_MODULES_MAX 32u

/* Writes "GPT2Model > GPT2Block > GPT2MLP", of a longer path its end. Returns how many modules are on it. */
static u32 write_path(const struct modules *m, u32 path, struct text_buffer *text)
{
	u32 list[PATH_MODULES_MAX] = { 0 }, depth = 0, n;

	for (; path; path = key_of(m, path)->parent) {
		if (depth < PATH_MODULES_MAX)
			list[depth] = path;
		depth++;
	}
	n = depth < PATH_MODULES_MAX ? depth : PATH_MODULES_MAX;
	text__add(text, depth > n ? ".. > " : "");
	for (u32 i = n; i > 0; i--) {
		const struct node *node = map__value(&m->nodes, list[i - 1] - 1);

		write_class(stacks__frame(m->s.stacks, node->frame), text);
		text__add(text, i > 1 ? " > " : "");
	}
	return depth;
}

static void fill_paths(const struct modules *m, struct table *t)
{
	for (u32 i = 0; i < m->nodes.n; i++) {
		const struct node *n = map__value(&m->nodes, i);
		char buf[1024] = "";
		u32 depth = write_path(m, i + 1, &(struct text_buffer){ .buf = buf, .size = sizeof(buf) });

		table__add(t, V_TEXT(buf), V_U64(depth), V_DBL(table__percent(n->self.cpu_ns, m->all.cpu_ns)),
			   V_U64(n->self.cpu_ns), V_DBL(table__percent(n->total.cpu_ns, m->all.cpu_ns)),
			   V_U64(n->total.cpu_ns), V_U64(n->self.off_ns), V_U64(n->total.off_ns),
			   V_U64(n->self.samples), V_U64(n->total.samples));
	}
	table__sort(t, "total_ns");
}

static void fill_classes(const struct modules *m, struct table *t)
{
	for (u32 i = 0; i < m->classes.n; i++) {
		const struct class *c = map__value(&m->classes, i);
		const struct stack_frame *f = stacks__frame(m->s.stacks, c->frame);
		char buf[STACK_LABEL] = "";

		write_class(f, &(struct text_buffer){ .buf = buf, .size = sizeof(buf) });
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
	char ns[TEXT_NUMBER], name[STACK_LABEL] = "";

	for (u32 i = 0; i < m->classes.n; i++) {
		const struct class *c = map__value(&m->classes, i);

		if (!most || c->self.cpu_ns > most->self.cpu_ns)
			most = c;
	}
	if (!most || !m->all.cpu_ns)
		return;
	write_class(stacks__frame(m->s.stacks, most->frame),
		    &(struct text_buffer){ .buf = name, .size = sizeof(name) });
	report_output__finding(
		out, "%.0f%% of the sampled CPU time, %s, was in forward() of modules; %.0f%% of that in %s itself.",
		table__percent(m->all.cpu_ns, m->s.all.cpu_ns), text__ns(ns, sizeof(ns), m->all.cpu_ns),
		table__percent(most->self.cpu_ns, m->all.cpu_ns), name);
	REPORT_FIGURES(out, FIGURE("forward_percent", V_DBL(table__percent(m->all.cpu_ns, m->s.all.cpu_ns))),
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
	map__init(&m.nodes, sizeof(struct node_key), sizeof(struct node));
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
