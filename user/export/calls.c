// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "export/calls.h"

#include "util/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct child_key {
	u32 parent, function, line;
};

struct known_key {
	u32 parent, stack, upside_down;
};

struct content {
	u64 a, b;
};

int call_functions__init(struct call_functions *f, const struct stacks *stacks)
{
	*f = (struct call_functions){ .stacks = stacks };
	map__init(&f->by_content, sizeof(struct content), sizeof(u32));
	map__init(&f->by_code, sizeof(u32), sizeof(u32));
	map__init(&f->owned, sizeof(char *), 1);
	return 0;
}

void call_functions__free(struct call_functions *f)
{
	for (u32 i = 0; i < f->owned.n; i++)
		free(*(char *const *)map__key(&f->owned, i));
	MAPS_FREE(&f->by_content, &f->by_code, &f->owned);
	free(f->list);
}

/* The key has two hashes, so that functions do not collide by chance. */
static struct content content_of(const struct call_function *f)
{
	u64 parts[2] = { XXH64(f->name, strlen(f->name), f->kind), XXH64(f->file, strlen(f->file), 0) };

	return (struct content){ XXH64(parts, sizeof(parts), f->first_line), parts[0] };
}

static int add(struct call_functions *f, const struct call_function *function, bool copy, u32 *out)
{
	struct content key = content_of(function);
	u32 *known = map__find(&f->by_content, &key);
	char *name;

	if (known) {
		*out = *known;
		return 0;
	}
	if (!array__room(f->list, f->n))
		return -ENOMEM;
	f->list[f->n] = *function;
	if (copy) {
		name = strdup(function->name);
		if (!name || !map__get(&f->owned, &name)) {
			free(name);
			return -ENOMEM;
		}
		f->list[f->n].name = name;
	}
	known = map__get(&f->by_content, &key);
	if (!known)
		return -ENOMEM;
	*out = *known = f->n++;
	return 0;
}

int call_functions__note(struct call_functions *f, u32 kind, const char *name, u32 *out)
{
	const struct call_function note = { .name = name, .file = "", .kind = kind };

	return add(f, &note, true, out);
}

/* Adds a function for a frame without a name, called by its address. */
static int add_nameless(struct call_functions *f, const struct stack_frame *frame, u32 *out)
{
	struct call_function function = { .file = frame->file, .kind = (u32)frame->kind };
	char name[32] = "[unknown]";

	if (frame->kind == FRAME_CUT)
		snprintf(name, sizeof(name), "[cut]");
	else if (frame->kind != FRAME_PYTHON && frame->offset)
		snprintf(name, sizeof(name), "0x%llx", frame->offset);
	function.name = name;
	return add(f, &function, true, out);
}

static int function_of(struct call_functions *f, const struct stack_frame *frame, u32 *out)
{
	const struct call_function function = {
		.name = frame->name,
		.file = frame->file,
		.source = frame->source,
		.first_line = frame->first_line,
		.kind = (u32)frame->kind,
	};
	u32 *known;
	int err;

	if (!*frame->name)
		return add_nameless(f, frame, out);
	known = map__get(&f->by_code, &frame->code);
	if (!known)
		return -ENOMEM;
	if (*known) {
		*out = *known - 1;
		return 0;
	}
	err = add(f, &function, false, out);
	if (!err)
		*known = *out + 1;
	return err;
}

int call_tree__init(struct call_tree *t, struct call_functions *f, bool lines)
{
	*t = (struct call_tree){ .functions = f, .has_lines = lines, .n = 1 };
	map__init(&t->children, sizeof(struct child_key), sizeof(u32));
	map__init(&t->stack_nodes, sizeof(struct known_key), sizeof(u32));
	t->nodes = calloc(array__capacity(1), sizeof(*t->nodes));
	t->pending = calloc(STACKS_DEEPEST, sizeof(*t->pending));
	return t->nodes && t->pending ? 0 : -ENOMEM;
}

void call_tree__free(struct call_tree *t)
{
	if (!t->functions)
		return;
	MAPS_FREE(&t->children, &t->stack_nodes);
	free(t->nodes);
	free(t->pending);
}

int call_tree__child(struct call_tree *t, u32 parent, u32 function, u32 line, u32 *out)
{
	struct child_key key = { parent, function, t->has_lines ? line : 0 };
	u32 *known = map__get(&t->children, &key);

	if (!known)
		return -ENOMEM;
	if (!*known) {
		if (t->n == CALLS_MAX)
			return -E2BIG;
		if (!array__room(t->nodes, t->n))
			return -ENOMEM;
		t->nodes[t->n] = (struct call_node){
			.parent = parent, .function = function, .line = key.line, .depth = t->nodes[parent].depth + 1
		};
		*known = t->n++;
	}
	*out = *known;
	return 0;
}

/* Goes from node `at` to its child for one frame, which it adds if necessary. */
static int step(struct call_tree *t, u32 stack, u32 *at)
{
	const struct stack_frame *frame = stacks__frame(t->functions->stacks, stack);
	u32 function;
	int err = function_of(t->functions, frame, &function);

	return err ? err : call_tree__child(t, *at, function, frame->line, at);
}

/* Adds a node for a stack that the trace does not describe, or for none. */
static int unknown(struct call_tree *t, u32 parent, u32 stack, u32 *out)
{
	u32 function;
	int err = call_functions__note(t->functions, CALL_NOTE, stack ? "[stack not known]" : "[no stack]", &function);

	return err ? err : call_tree__child(t, parent, function, 0, out);
}

static u32 *ends_at(struct call_tree *t, u32 parent, u32 stack, bool upside_down)
{
	struct known_key key = { parent, stack, upside_down };

	return map__get(&t->stack_nodes, &key);
}

int call_tree__stack(struct call_tree *t, u32 parent, u32 stack, u32 *out)
{
	const struct stack_frame *frame = stacks__frame(t->functions->stacks, stack);
	u32 n = 0, at = parent, *known;
	int err = 0;

	if (!frame)
		return unknown(t, parent, stack, out);
	/* Walks up to a caller whose node is known, then adds the frames below it. */
	for (u32 id = stack; frame; id = frame->caller, frame = stacks__frame(t->functions->stacks, id)) {
		known = ends_at(t, parent, id, false);
		if (!known)
			return -ENOMEM;
		if (*known) {
			at = *known;
			break;
		}
		t->pending[n++] = id;
	}
	while (!err && n--) {
		err = step(t, t->pending[n], &at);
		if (!err)
			*ends_at(t, parent, t->pending[n], false) = at;
	}
	*out = at;
	return err;
}

int call_tree__upside_down(struct call_tree *t, u32 parent, u32 stack, u32 *out)
{
	const struct stack_frame *frame = stacks__frame(t->functions->stacks, stack);
	u32 *known = ends_at(t, parent, stack, true), at = parent;
	int err = 0;

	if (!known)
		return -ENOMEM;
	if (*known) {
		*out = *known;
		return 0;
	}
	if (!frame)
		return unknown(t, parent, stack, out);
	for (u32 id = stack; !err && frame; id = frame->caller, frame = stacks__frame(t->functions->stacks, id))
		err = step(t, id, &at);
	*out = *known = at;
	return err;
}

struct links {
	u32 first, next; /* child, sibling; 0: none */
};

static struct links *link_nodes(const struct call_tree *t)
{
	struct links *links = calloc(t->n, sizeof(*links));

	for (u32 i = t->n; links && --i;) {
		links[i].next = links[t->nodes[i].parent].first;
		links[t->nodes[i].parent].first = i;
	}
	return links;
}

int call_tree__each(const struct call_tree *t, int (*fn)(const struct call_node *path[], u32 n, void *arg), void *arg)
{
	/* The deepest path is a process, a stack, a note and a second stack. */
	const struct call_node **path = calloc(2 * STACKS_DEEPEST + 16, sizeof(*path));
	struct links *links = link_nodes(t);
	int err = path && links ? 0 : -ENOMEM;

	for (u32 at = err ? 0 : links[0].first; !err && at;) {
		const struct call_node *node = &t->nodes[at];

		path[node->depth - 1] = node;
		if (node->self || node->count)
			err = fn(path, node->depth, arg);
		if (links[at].first) {
			at = links[at].first;
			continue;
		}
		while (at && !links[at].next)
			at = t->nodes[at].parent;
		at = links[at].next;
	}
	free(links);
	free(path);
	return err;
}
