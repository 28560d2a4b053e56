// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/dump_tasks.h"

#include "output/text.h"

#include <stdio.h>

static const struct column columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },     { "group", "Group", VALUE_U64, SHOW_PLAIN },
	{ "tasks", "Tasks", VALUE_U64, SHOW_COUNT }, { "role", "Role", VALUE_TEXT, SHOW_PLAIN },
	{ "depth", "Depth", VALUE_U64, SHOW_PLAIN }, { "function", "Function", VALUE_TEXT, SHOW_PLAIN },
	{ "file", "File", VALUE_TEXT, SHOW_PLAIN },  { "line", "Line", VALUE_U64, SHOW_PLAIN },
};

struct table *dump_tasks__table(struct report_output *out)
{
	return REPORT_TABLE(out, "tasks", "Waiting asyncio tasks by stack, the innermost coroutine first", columns);
}

static void fill(const struct task_stack *s, u32 pid, u32 group, u32 tasks, const char *role, struct table *table)
{
	for (u32 i = 0; i < s->n; i++)
		table__add(table, V_U64(pid), V_U64(group), V_U64(tasks), V_TEXT(role), V_U64(i),
			   V_TEXT(s->frames[i].name), V_TEXT(s->frames[i].file),
			   s->frames[i].line ? V_U64(s->frames[i].line) : V_NONE);
}

void dump_tasks__fill(const struct tasks *t, u32 pid, struct table *table)
{
	for (u32 i = 0; i < t->n; i++) {
		fill(&t->groups[i].stack, pid, i, t->groups[i].tasks, "waits", table);
		fill(&t->groups[i].holder, pid, i, 1, "holds", table);
	}
}

void dump_tasks__print(const struct tasks *t, void (*print_frame)(const struct snapshot_frame *f))
{
	if (!t->all)
		return;
	printf("\n%u asyncio task%s, of which %u wait%s\n", t->all, text__s(t->all), t->waiting,
	       t->waiting == 1 ? "s" : "");
	for (u32 i = 0; i < t->n; i++) {
		const struct task_group *g = &t->groups[i];

		printf("\n%u task%s wait%s:\n", g->tasks, text__s(g->tasks), g->tasks == 1 ? "s" : "");
		for (u32 k = 0; k < g->stack.n; k++)
			print_frame(&g->stack.frames[k]);
		if (!g->holder.n)
			continue;
		puts("  for what this task is in `async with` of:");
		for (u32 k = 0; k < g->holder.n; k++)
			print_frame(&g->holder.frames[k]);
	}
	if (t->more)
		puts("\n(and more tasks)");
}
