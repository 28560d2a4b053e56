/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Merges stacks into a tree of calls, in which equal callers are one node even if their frames have different ids; each
 * node has the time spent in it. The tree's size depends on the number of different stacks, not of events.
 */
#pragma once

#include "model/stacks.h"
#include "util/map.h"

/* Kinds of functions that are no frame of a target, beside enum frame_kind. */
enum { CALL_PROCESS = 100, CALL_NOTE = 101 };

/* Limit for the nodes of a tree (some 800 MB), which only hostile files reach. */
#define CALLS_MAX (8u << 20)

struct call_function {
	const char *name; /* untrusted, never empty */
	const char *file; /* "" if there is none */
	const char *source; /* that lines are in, if it is another file; else NULL or "" */
	u32 first_line; /* 0: not known */
	u32 kind; /* enum frame_kind, or one of the above */
};

/* All trees of an export share their functions. */
struct call_functions {
	const struct stacks *stacks;
	struct call_function *list;
	u32 n;
	struct map by_content; /* u64 hash[2] -> u32 */
	struct map by_code; /* u32 -> u32 number plus one */
	struct map owned; /* char *: names that this struct owns */
};

struct call_node {
	u32 parent; /* of the root, 0: itself */
	u32 function;
	u32 line; /* 0: not known, or lines are not distinguished */
	u32 depth; /* the root's is 0 */
	u64 self; /* spent in it without its callees */
	u64 count; /* events whose stack ends here */
};

struct call_tree {
	struct call_functions *functions;
	bool has_lines; /* two lines of one function are two nodes */
	struct call_node *nodes; /* 0: the root; parents precede their children */
	u32 n;
	struct map children; /* struct child_key -> u32 */
	struct map stack_nodes; /* struct known_key -> u32: the last node of a stack */
	u32 *pending; /* scratch: [STACKS_DEEPEST] frames still to be added */
};

int call_functions__init(struct call_functions *f, const struct stacks *stacks);
void call_functions__free(struct call_functions *f);
/* Adds a function that is no frame's; its name is copied. Returns 0 or negative errno. */
int call_functions__note(struct call_functions *f, u32 kind, const char *name, u32 *out);

/* This and the next functions return 0, -ENOMEM, or -E2BIG beyond CALLS_MAX. */
int call_tree__init(struct call_tree *t, struct call_functions *f, bool lines);
void call_tree__free(struct call_tree *t);
int call_tree__child(struct call_tree *t, u32 parent, u32 function, u32 line, u32 *out);
/* Adds all frames of a stack beneath `parent`, the outermost first; *out is the last node. */
int call_tree__stack(struct call_tree *t, u32 parent, u32 stack, u32 *out);
/* Adds them in reverse order, the innermost first. */
int call_tree__upside_down(struct call_tree *t, u32 parent, u32 stack, u32 *out);

/*
 * Reduces the tree to the root and the `max` nodes with the most total time; the time of a removed node goes to its
 * nearest caller. *least is the smallest total time that remains, 0 if no node was removed. No stacks can be added
 * afterwards. Returns 0 or -ENOMEM.
 */
int call_tree__limit(struct call_tree *t, u32 max, u64 *least);
/* Removes functions without a node in the n trees, which must be all trees of f. Returns 0 or -ENOMEM. */
int call_functions__drop_unused(struct call_functions *f, struct call_tree *const *trees, u32 n);

/* Calls fn for each node with a value of its own, callers first; path[0..n) leads from the outermost node to it. */
int call_tree__each(const struct call_tree *t, int (*fn)(const struct call_node *path[], u32 n, void *arg), void *arg);
