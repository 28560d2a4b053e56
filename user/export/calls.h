/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks merged into a tree of calls, in which equal callers are one node regardless of their frames' ids, each
 * with the time spent in it. Its size depends on the number of different stacks, not of events.
 */
#ifndef SONDE_EXPORT_CALLS_H
#define SONDE_EXPORT_CALLS_H

#include "model/stacks.h"
#include "util/map.h"

/* What is no frame of a target: enum frame_kind goes on here */
enum { CALL_PROCESS = 100, CALL_NOTE = 101 };

/* Nodes of one tree at most: some 800 MB. No machine's stacks are so many; a hostile file's may be. */
#define CALLS_MAX (8u << 20)

struct call_function {
	const char *name; /* untrusted, never empty */
	const char *file; /* "" if there is none */
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
	struct map owned; /* char *: names made here */
};

struct call_node {
	u32 parent; /* of the root, 0: itself */
	u32 function;
	u32 line; /* 0: not known, or lines are not distinguished */
	u32 depth; /* the root's is 0 */
	u64 self; /* spent in it and not in what it calls */
	u64 count; /* events that ended in it */
};

struct call_tree {
	struct call_functions *functions;
	bool lines; /* two lines of one function are two nodes */
	struct call_node *nodes; /* 0: the root; parents precede their children */
	u32 n;
	struct map children; /* struct child_key -> u32 */
	struct map known; /* struct known_key -> u32: where a stack ends */
	u32 *way; /* [STACKS_DEEPEST] */
};

int call_functions__init(struct call_functions *f, const struct stacks *stacks);
void call_functions__free(struct call_functions *f);
/* The number of a function that is no frame's. The name is copied. 0 or negative errno. */
int call_functions__note(struct call_functions *f, u32 kind, const char *name, u32 *out);

/* 0, -ENOMEM, -E2BIG: more than CALLS_MAX; so do the others. */
int call_tree__init(struct call_tree *t, struct call_functions *f, bool lines);
void call_tree__free(struct call_tree *t);
int call_tree__child(struct call_tree *t, u32 parent, u32 function, u32 line, u32 *out);
/* All frames of a stack beneath `parent`, the outermost first. */
int call_tree__stack(struct call_tree *t, u32 parent, u32 stack, u32 *out);
/* The same upside down: the innermost first. */
int call_tree__upside_down(struct call_tree *t, u32 parent, u32 stack, u32 *out);

/* Calls fn for each node that has something spent in it, callers' order kept; path[0..n) from the outermost to it. */
int call_tree__each(const struct call_tree *t, int (*fn)(const struct call_node *path[], u32 n, void *arg), void *arg);

#endif
