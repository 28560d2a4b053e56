// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/dump_tasks.h"

#include "model/net_peers.h"
#include "output/print.h"
#include "output/text.h"
#include "util/array.h"

#include <stdio.h>
#include <stdlib.h>

static const struct column stack_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },     { "group", "Group", VALUE_U64, SHOW_PLAIN },
	{ "tasks", "Tasks", VALUE_U64, SHOW_COUNT }, { "role", "Role", VALUE_TEXT, SHOW_PLAIN },
	{ "depth", "Depth", VALUE_U64, SHOW_PLAIN }, { "function", "Function", VALUE_TEXT, SHOW_PLAIN },
	{ "file", "File", VALUE_TEXT, SHOW_PLAIN },  { "line", "Line", VALUE_U64, SHOW_PLAIN },
};

static const struct column task_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },     { "task", "Task", VALUE_U64, SHOW_PLAIN },
	{ "name", "Name", VALUE_TEXT, SHOW_PLAIN },  { "state", "State", VALUE_TEXT, SHOW_PLAIN },
	{ "group", "Group", VALUE_U64, SHOW_PLAIN }, { "peer", "Peer", VALUE_TEXT, SHOW_PLAIN },
};

static const struct column await_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "task", "Task", VALUE_U64, SHOW_PLAIN },
	{ "awaits", "Awaits", VALUE_U64, SHOW_PLAIN },
};

void dump_tasks__tables(struct dump_tasks *d, struct report_output *out)
{
	d->stacks = REPORT_TABLE(out, "tasks", "Asyncio tasks by stack, the innermost coroutine first", stack_columns);
	d->tasks = REPORT_TABLE(out, "task_names", "Asyncio tasks", task_columns);
	d->awaits = REPORT_TABLE(out, "task_awaits", "Which asyncio tasks await which others", await_columns);
}

static const char *state_text(enum task_state state)
{
	return state == TASK_WAITS ? "waits" : state == TASK_RUNS ? "runs" : "ready";
}

/* Returns NULL if there is no peer. */
static const char *peer_text(const struct task_peer *p, char *buf, size_t size)
{
	struct net_peer_key key = { .high = p->high, .low = p->low, .port = p->port };

	return p->port ? net_peer_key__text(&key, buf, size) : NULL;
}

static void fill(const struct task_stack *s, u32 pid, u32 group, u32 tasks, const char *role, struct table *table)
{
	for (u32 i = 0; i < s->n; i++)
		table__add(table, V_U64(pid), V_U64(group), V_U64(tasks), V_TEXT(role), V_U64(i),
			   V_TEXT(s->frames[i].name), V_TEXT(s->frames[i].file),
			   s->frames[i].line ? V_U64(s->frames[i].line) : V_NONE);
}

void dump_tasks__fill(const struct dump_tasks *d, const struct tasks *t, u32 pid)
{
	char peer[64];

	for (u32 i = 0; i < t->n; i++) {
		fill(&t->groups[i].stack, pid, i, t->groups[i].tasks, state_text(t->groups[i].state), d->stacks);
		fill(&t->groups[i].holder, pid, i, 1, "holds", d->stacks);
	}
	for (u32 i = 0; i < t->n_list; i++) {
		u32 group = t->list[i].group;
		const struct task_group *g = group == TASK_NO_GROUP ? NULL : &t->groups[group];

		table__add(d->tasks, V_U64(pid), V_U64(i), V_TEXT(t->list[i].name),
			   V_TEXT(g ? state_text(g->state) : NULL), g ? V_U64(group) : V_NONE,
			   V_TEXT(g && !g->holder.n ? peer_text(&g->peer, peer, sizeof(peer)) : NULL));
	}
	for (u32 i = 0; i < t->n_awaits; i++)
		table__add(d->awaits, V_U64(pid), V_U64(t->awaits[i].waiter), V_U64(t->awaits[i].awaited));
}

/*
 * The tree of tasks: a node has the tasks of one group that are awaited by tasks of the node above it. A task is in one
 * node; where it is awaited by others, too, these have a node that refers to that one.
 */
struct node {
	u32 parent, group, depth;
	u32 refers; /* node; 0: none */
	u32 tasks;
};

#define NODES_MAX  4096
#define NAMES_MAX  3
#define INDENT_MAX 15

struct tree {
	const struct tasks *t;
	struct node *nodes; /* the first one is above all others */
	u32 n;
	u32 *node_of; /* by task; 0: it is in no node yet */
	u32 *placed; /* the tasks in nodes, in this order */
	u32 n_placed, n_done; /* and of how many of them the awaited tasks were placed */
	u32 *awaits; /* by task: the index of the first task that it awaits in t->awaits */
};

/* Returns the node, which may be new; 0: there are too many, or no memory. */
static u32 node_for(struct tree *tree, u32 parent, u32 group, u32 refers)
{
	for (u32 i = parent + 1; i < tree->n; i++)
		if (tree->nodes[i].parent == parent && tree->nodes[i].group == group && tree->nodes[i].refers == refers)
			return i;
	if (tree->n == NODES_MAX || !array__room(tree->nodes, tree->n))
		return 0;
	tree->nodes[tree->n] = (struct node){ .parent = parent, .group = group, .refers = refers };
	tree->nodes[tree->n].depth = parent ? tree->nodes[parent].depth + 1 : 0;
	return tree->n++;
}

static void place(struct tree *tree, u32 parent, u32 task)
{
	u32 group = tree->t->list[task].group, node = tree->node_of[task];

	if (group == TASK_NO_GROUP)
		return;
	if (node) {
		if (tree->nodes[node].parent != parent)
			node_for(tree, parent, group, node);
		return;
	}
	node = tree->node_of[task] = node_for(tree, parent, group, 0);
	if (!node)
		return;
	tree->nodes[node].tasks++;
	tree->placed[tree->n_placed++] = task;
}

/* Places a task that no node has, and all that it awaits. */
static void place_all(struct tree *tree, u32 task)
{
	const struct tasks *t = tree->t;

	if (!tree->node_of[task])
		place(tree, 0, task);
	for (; tree->n_done < tree->n_placed; tree->n_done++) {
		u32 waiter = tree->placed[tree->n_done];

		for (u32 i = tree->awaits[waiter]; i < t->n_awaits && t->awaits[i].waiter == waiter; i++)
			place(tree, tree->node_of[waiter], t->awaits[i].awaited);
	}
}

/* Tasks that no task awaits come first; those that await each other in a circle begin with any of them. */
static void build(struct tree *tree, bool *is_awaited)
{
	const struct tasks *t = tree->t;

	node_for(tree, 0, TASK_NO_GROUP, 0);
	for (u32 i = t->n_awaits; i-- > 0;) {
		is_awaited[t->awaits[i].awaited] = true;
		tree->awaits[t->awaits[i].waiter] = i;
	}
	for (u32 i = 0; i < t->n_list; i++)
		if (!is_awaited[i])
			place_all(tree, i);
	for (u32 i = 0; i < t->n_list; i++)
		place_all(tree, i);
}

static void print_names(const struct tree *tree, u32 node, u32 all)
{
	u32 n = 0;

	for (u32 i = 0; i < tree->t->n_list && n < NAMES_MAX; i++) {
		if (tree->node_of[i] != node)
			continue;
		fputs(n++ ? ", " : "", stdout);
		print__clean(stdout, tree->t->list[i].name);
	}
	if (all > n)
		printf(" and %u more", all - n);
}

static void print_stack(const struct task_stack *s, u32 indent)
{
	for (u32 i = 0; i < s->n; i++)
		dump__print_frame(&s->frames[i], indent);
}

static void print_group(const struct task_group *g, u32 indent)
{
	char peer[64];

	print_stack(&g->stack, indent + 4);
	if (g->holder.n) {
		printf("%*sfor what ", (int)indent + 2, "");
		print__clean(stdout, g->holder_name);
		puts(" is in `async with` of:");
		print_stack(&g->holder, indent + 4);
	} else if (peer_text(&g->peer, peer, sizeof(peer))) {
		printf("%*sfor %s\n", (int)indent + 2, "", peer);
	}
}

/* Prints "2 tasks wait: Task-3, Task-4", behind an arrow if others await them. */
static void print_node(const struct tree *tree, u32 node)
{
	static const char *const states[][2] = {
		[TASK_WAITS] = { "wait", "waits" },
		[TASK_READY] = { "are ready to run", "is ready to run" },
		[TASK_RUNS] = { "run", "runs" },
	};
	const struct node *n = &tree->nodes[node];
	const struct task_group *g = &tree->t->groups[n->group];
	u32 named = n->refers ? n->refers : node, all = tree->nodes[named].tasks;
	u32 indent = (n->depth < INDENT_MAX ? n->depth : INDENT_MAX) * 4;

	printf(n->depth ? "%*s-> " : "\n%*s", (int)indent, "");
	printf("%u task%s %s: ", all, text__s(all), states[g->state][all == 1]);
	print_names(tree, named, all);
	puts(n->refers ? " (printed elsewhere)" : "");
	if (!n->refers)
		print_group(g, indent);
}

/* Prints the nodes below one, each followed by those below it. The depth is that of the tree, which is bounded. */
static void print_below(const struct tree *tree, u32 parent)
{
	for (u32 i = parent + 1; i < tree->n; i++) {
		if (tree->nodes[i].parent != parent)
			continue;
		print_node(tree, i);
		print_below(tree, i);
	}
}

void dump_tasks__print(const struct tasks *t)
{
	u32 *words = calloc(3 * (size_t)t->n_list + 1, sizeof(*words));
	bool *is_awaited = calloc(t->n_list + 1, sizeof(*is_awaited));
	struct tree tree = { .t = t };

	if (t->all && words && is_awaited) {
		tree.node_of = words;
		tree.placed = words + t->n_list;
		tree.awaits = words + 2 * (size_t)t->n_list;
		printf("\n%u asyncio task%s, of which %u wait%s\n", t->all, text__s(t->all), t->waiting,
		       t->waiting == 1 ? "s" : "");
		build(&tree, is_awaited);
		print_below(&tree, 0);
		if (t->more || tree.n == NODES_MAX)
			puts("\n(and more tasks)");
	}
	free(tree.nodes);
	free(words);
	free(is_awaited);
}
