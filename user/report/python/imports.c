// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report imports: a tree of CPython's imports as `python -X importtime` prints it, with self and total time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/stacks.h"
#include "output/text.h"
#include "report/report.h"
#include "util/array.h"
#include "util/compare.h"

#define IMPORTS_MAX 1000000
#define NAME_MAX_   128
#define NO_PARENT   ~0u

struct import {
	u64 start, end;
	u64 nested; /* ns of its direct children */
	u32 pid, tid, stack, depth;
	u32 parent; /* index, NO_PARENT: it is at the top */
	u32 first, next; /* of its children, largest first; of its siblings */
	bool open;
	char module[NAME_MAX_];
};

struct imports {
	const struct query *args;
	struct import *list;
	u32 n;
	u32 *order; /* indices: siblings sorted */
	bool is_incomplete;
};

static int on_rows(const struct rows *rows, void *arg)
{
	struct common_fields f = common_fields__of(rows__event(rows));
	FIELDS_OF(rows__event(rows), depth, module, stack);
	struct imports *in = arg;
	const char *name;
	u32 len;

	ROWS_EACH(v, rows) {
		if (in->n == IMPORTS_MAX) {
			in->is_incomplete = true;
			return 0;
		}
		if (!array__room(in->list, in->n))
			return -ENOMEM;
		in->list[in->n] = (struct import){
			.start = (u64)view__s64(&v, f.start),
			.end = (u64)view__s64(&v, f.time),
			.pid = (u32)view__s64(&v, f.pid),
			.tid = (u32)view__s64(&v, f.tid),
			.depth = (u32)view__s64(&v, depth),
			.stack = (u32)view__s64(&v, stack),
			.open = view__s64(&v, f.flags) & EVENT_OPEN,
			.parent = NO_PARENT,
			.first = NO_PARENT,
			.next = NO_PARENT,
		};
		name = view__text(&v, module, &len);
		snprintf(in->list[in->n++].module, NAME_MAX_, "%.*s", (int)(len < NAME_MAX_ ? len : NAME_MAX_ - 1),
			 len ? name : "?");
	}
	return 0;
}

/* Orders imports by thread, and outer ones before those within them. */
COMPARE_BY(compare_starts, struct import, ASCENDING(tid), ASCENDING(start), ASCENDING(depth))

/* Finds the parent of each import: the last one before it on its thread that has not ended. */
static void find_parents(struct imports *in)
{
	u32 open = NO_PARENT;

	for (u32 i = 0; i < in->n; i++) {
		struct import *m = &in->list[i];

		while (open != NO_PARENT && (in->list[open].tid != m->tid || in->list[open].pid != m->pid ||
					     in->list[open].end < m->end || in->list[open].depth >= m->depth))
			open = in->list[open].parent;
		m->parent = open;
		if (open != NO_PARENT)
			in->list[open].nested += m->end - m->start;
		open = i;
	}
}

static u64 cumulative(const struct import *m)
{
	return m->end - m->start;
}

static u64 self_time(const struct import *m)
{
	return m->nested < cumulative(m) ? cumulative(m) - m->nested : 0;
}

static const struct import *sorted; /* qsort has no argument of its own */

static int compare_cumulative(const void *a, const void *b)
{
	const struct import *x = &sorted[*(const u32 *)a], *y = &sorted[*(const u32 *)b];

	if (cumulative(x) != cumulative(y))
		return cumulative(x) < cumulative(y) ? -1 : 1;
	return (x->start < y->start) - (x->start > y->start);
}

/* Adds each import at the head of its parent's list, the shortest first, so that the longest come first. */
static int link_siblings(struct imports *in, u32 *top)
{
	*top = NO_PARENT;
	in->order = calloc(in->n + 1, sizeof(*in->order));
	if (!in->order)
		return -ENOMEM;
	for (u32 i = 0; i < in->n; i++)
		in->order[i] = i;
	sorted = in->list;
	qsort(in->order, in->n, sizeof(*in->order), compare_cumulative);
	for (u32 i = 0; i < in->n; i++) {
		struct import *m = &in->list[in->order[i]];
		u32 *head = m->parent == NO_PARENT ? top : &in->list[m->parent].first;

		m->next = *head;
		*head = in->order[i];
	}
	return 0;
}

static const struct column tree_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "tid", "TID", VALUE_U64, SHOW_NEVER },
	{ "start_ns", "At (s)", VALUE_S64, SHOW_SECONDS },
	{ "end_ns", "End", VALUE_S64, SHOW_NEVER },
	{ "depth", "Depth", VALUE_U64, SHOW_NEVER },
	{ "self_ns", "Self", VALUE_U64, SHOW_NS },
	{ "cumulative_ns", "Cumulative", VALUE_U64, SHOW_NS },
	{ "tree", "Module", VALUE_TEXT, SHOW_PLAIN },
	{ "module", "Module's name", VALUE_TEXT, SHOW_NEVER },
	{ "code", "Imported by", VALUE_TEXT, SHOW_PLAIN },
};

static const struct column module_columns[] = {
	{ "self_ns", "Self", VALUE_U64, SHOW_NS },	{ "cumulative_ns", "Cumulative", VALUE_U64, SHOW_NS },
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "module", "Module", VALUE_TEXT, SHOW_PLAIN },
};

static void add_row(const struct imports *in, const struct stacks *s, const struct import *m, u32 depth,
		    struct table *tree, struct table *modules)
{
	char text[NAME_MAX_ + 160], code[STACK_LABEL];
	u32 top = s ? stacks__top_user(s, m->stack) : 0;

	snprintf(text, sizeof(text), "%*s%s%s", (int)(depth < 64 ? 2 * depth : 128), "", m->module,
		 m->open ? " (not done)" : "");
	table__add(tree, V_U64(m->pid), V_U64(m->tid), report__moment(in->args, m->start),
		   report__moment(in->args, m->end), V_U64(depth), V_U64(self_time(m)), V_U64(cumulative(m)),
		   V_TEXT(text), V_TEXT(m->module),
		   V_TEXT(top && stacks__frame(s, top) ? stacks__label(s, top, code, sizeof(code)) : NULL));
	table__add(modules, V_U64(self_time(m)), V_U64(cumulative(m)), V_U64(m->pid),
		   V_TEXT(NAMES_TITLE(in->args->names, m->pid, 0)), V_TEXT(m->module));
}

static void fill(const struct imports *in, u32 top, const struct stacks *s, struct report_output *out)
{
	struct table *tree = REPORT_TABLE(out, "imports", "Imports, the longest first, what each imported below it",
					  tree_columns),
		     *modules = REPORT_TABLE(out, "modules", "Modules by their own time", module_columns);
	u32 i = top, depth = 0;

	tree->limit = 60;
	modules->limit = 20;
	while (i != NO_PARENT) {
		add_row(in, s, &in->list[i], depth, tree, modules);
		if (in->list[i].first != NO_PARENT) {
			i = in->list[i].first;
			depth++;
			continue;
		}
		while (i != NO_PARENT && in->list[i].next == NO_PARENT) {
			i = in->list[i].parent;
			depth -= i != NO_PARENT;
		}
		if (i != NO_PARENT)
			i = in->list[i].next;
	}
	table__sort(modules, "self_ns");
}

static void add_findings(const struct imports *in, u32 top, struct report_output *out)
{
	char who[64], longest[TEXT_NUMBER], own[TEXT_NUMBER];
	const struct import *slowest, *first;
	u64 sum = 0;
	u32 n = 0;

	if (top == NO_PARENT)
		return;
	first = slowest = &in->list[top];
	for (u32 i = 0; i < in->n; i++) {
		const struct import *m = &in->list[i];

		if (m->pid != first->pid)
			continue;
		n++;
		sum += m->parent == NO_PARENT ? cumulative(m) : 0;
		if (self_time(m) > self_time(slowest))
			slowest = m;
	}
	names__label(in->args->names, who, sizeof(who), first->pid, 0);
	text__ns(longest, sizeof(longest), cumulative(first));
	text__ns(own, sizeof(own), self_time(first));
	report_output__finding(out, "%s: %u modules took %s to import; %s took %s of that (self time %s).", who, n,
			       TEXT_NS(sum), first->module, longest, own);
	if (slowest != first)
		report_output__finding(out, "The longest self time is that of %s: %s.", slowest->module,
				       TEXT_NS(self_time(slowest)));
}

static int run(const struct query *args, struct report_output *out)
{
	struct imports in = { .args = args };
	struct stacks *s = NULL;
	u32 top = NO_PARENT;
	int err;

	err = query__read_kind(args, "python_import", on_rows, &in);
	if (!err)
		err = stacks__load(&s, args->trace);
	if (!err && in.n) {
		qsort(in.list, in.n, sizeof(*in.list), compare_starts);
		find_parents(&in);
		err = link_siblings(&in, &top);
	}
	if (!err) {
		add_findings(&in, top, out);
		fill(&in, top, s, out);
	}
	if (!in.n)
		report__nothing(args, out, "No import was recorded", "python");
	if (in.is_incomplete)
		report_output__note(out, "Only the first %u imports are shown.", IMPORTS_MAX);
	stacks__free(s);
	free(in.list);
	free(in.order);
	return err;
}

REPORT(imports) = {
	.name = "imports",
	.doc = "CPython's imports as a tree: self time and total time of each",
	.kinds = "python_import",
	.run = run,
};
