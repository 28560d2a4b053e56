// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report processes: a tree of processes with command lines, containers, and start and end times. */
#include <errno.h>
#include <stdio.h>

#include "report/report.h"

/* Limit for the tree's depth, as a damaged trace may have a cycle. */
#define DEPTH_MAX 32

struct process {
	const struct task *task;
	u32 child, last_child, sibling; /* index plus 1; 0: none */
	bool has_parent, printed;
};

struct tree {
	const struct query *args;
	struct map processes; /* const struct task * -> struct process */
	struct table *table;
	bool failed;
};

static void add(const struct task *task, void *arg)
{
	struct tree *t = arg;
	struct process *p = map__get(&t->processes, &task);

	if (p)
		p->task = task;
	else
		t->failed = true;
}

/* Links each process to its parent, which had the parent's pid when it began; children in order of appearance. */
static void link_children(struct tree *t)
{
	for (u32 i = 0; i < t->processes.n; i++) {
		struct process *p = map__value(&t->processes, i), *parent;
		const struct task *task = p->task, *of;

		of = task->ppid && task->ppid != task->pid ?
			     names__process_at(t->args->names, task->ppid, task->start) :
			     NULL;
		parent = of ? map__find(&t->processes, &of) : NULL;
		if (!parent)
			continue;
		p->has_parent = true;
		if (parent->last_child)
			((struct process *)map__value(&t->processes, parent->last_child - 1))->sibling = i + 1;
		else
			parent->child = i + 1;
		parent->last_child = i + 1;
	}
}

static struct value moment(const struct tree *t, u64 time)
{
	return time ? V_S64((s64)(time - t->args->start)) : V_NONE;
}

/* Does the process have a thread that --tid selects? */
static bool has_thread(const struct tree *t, const struct task *task)
{
	const struct trace_ids *tids = &t->args->tids;
	const struct task *thread;
	bool has = !tids->n;

	for (u32 i = 0; !has && i < tids->n; i++) {
		thread = names__task(t->args->names, task->id, tids->list[i]);
		has = thread && thread->pid == task->pid && (!thread->start || thread->start >= task->start) &&
		      (!task->end || thread->start <= task->end);
	}
	return has;
}

/* Do --time, -p and --tid select the process? */
static bool is_selected(const struct tree *t, const struct task *task)
{
	const struct query *a = t->args;

	return trace_ids__have(&a->pids, task->id) && has_thread(t, task) && (!a->to || task->start < a->to) &&
	       (!a->from || !task->end || task->end >= a->from);
}

static void print(struct tree *t, struct process *p, u32 depth)
{
	const struct task *task = p->task;
	const struct names *names = t->args->names;
	const char *title = NAMES_TITLE(names, task->id, 0), *container, *pod;
	char name[2 * DEPTH_MAX + 64];

	p->printed = true;
	if (!is_selected(t, task))
		return;
	names__container_of(names, task, &container, &pod);
	snprintf(name, sizeof(name), "%*s%s", (int)(2 * depth), "", title ?: "?");
	table__add(t->table, V_U64(task->pid), task->ppid ? V_U64(task->ppid) : V_NONE, V_TEXT(name), V_U64(depth),
		   moment(t, task->start), moment(t, task->end), V_TEXT(*container ? container : NULL),
		   V_TEXT(*pod ? pod : NULL), V_TEXT(task->exe ? names__string(names, task->exe) : NULL),
		   V_TEXT(task->command ? names__string(names, task->command) : NULL));
}

static void print_with_children(struct tree *t, struct process *p, u32 depth)
{
	if (p->printed)
		return;
	print(t, p, depth);
	for (u32 i = depth < DEPTH_MAX ? p->child : 0; i;) {
		struct process *child = map__value(&t->processes, i - 1);

		print_with_children(t, child, depth + 1);
		i = child->sibling;
	}
}

static const struct column columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "ppid", "Parent", VALUE_U64, SHOW_NEVER },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "depth", "Depth", VALUE_U64, SHOW_NEVER },
	{ "start_ns", "Started (s)", VALUE_S64, SHOW_SECONDS },
	{ "end_ns", "Ended (s)", VALUE_S64, SHOW_SECONDS },
	{ "container", "Container", VALUE_TEXT, SHOW_PLAIN },
	{ "pod", "Pod", VALUE_TEXT, SHOW_NEVER },
	{ "exe", "Program", VALUE_TEXT, SHOW_NEVER },
	{ "command", "Command", VALUE_TEXT, SHOW_PLAIN },
};

static int run(const struct query *args, struct report_output *out)
{
	struct tree t = { .args = args };

	t.table = REPORT_TABLE(out, "processes", "Processes, each below its parent", columns);
	t.table->limit = 60;
	map__init(&t.processes, sizeof(struct task *), sizeof(struct process));
	names__each_process(args->names, add, &t);
	link_children(&t);
	/* Roots, whose parents are not in the trace, come first, then the members of cycles. */
	MAP_EACH(struct process *p, &t.processes)
		if (!p->has_parent)
			print_with_children(&t, p, 0);
	for (u32 i = 0; i < t.processes.n; i++)
		print_with_children(&t, map__value(&t.processes, i), 0);
	if (!t.processes.n)
		report__nothing(args, out, "No processes were recorded", "proc");
	map__free(&t.processes);
	return t.failed ? -ENOMEM : 0;
}

REPORT(processes) = {
	.name = "processes",
	.doc = "the processes as a tree, each below its parent: containers, command lines, starts and ends",
	.kinds = "proc",
	.run = run,
};
