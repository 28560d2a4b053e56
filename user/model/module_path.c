// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/module_path.h"

#include <errno.h>
#include <string.h>

#include "output/text.h"
#include "util/path.h"

struct module_path_key {
	u32 parent; /* number of the path without the last module; 0: none */
	u32 code; /* of the function forward() */
};

struct module_path {
	u32 number;
	u32 frame; /* one of its frames, for its name */
};

void module_paths__init(struct module_paths *m, const struct stacks *stacks)
{
	m->stacks = stacks;
	map__init(&m->paths, sizeof(struct module_path_key), sizeof(struct module_path));
	map__init(&m->by_stack, sizeof(u32), sizeof(u32));
}

void module_paths__free(struct module_paths *m)
{
	MAPS_FREE(&m->paths, &m->by_stack);
}

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

/* *path: number of the path without the module of this frame, then with it. 0 or -ENOMEM. */
static int add_module(struct module_paths *m, u32 *path, u32 frame)
{
	struct module_path_key key = { *path, stacks__frame(m->stacks, frame)->code };
	struct module_path *p = map__get(&m->paths, &key);

	if (!p)
		return -ENOMEM;
	/* the entries of a map are in order of insertion */
	if (!p->number)
		*p = (struct module_path){ m->paths.n, frame };
	*path = p->number;
	return 0;
}

static int find(struct module_paths *m, u32 stack, u32 *path)
{
	u32 frames[STACKS_DEEPEST], n = stacks__path(m->stacks, stack, frames, STACKS_DEEPEST);
	bool is_called = false;
	int err = 0;

	*path = 0;
	for (u32 i = 0; !err && i < n; i++) {
		const struct stack_frame *f = stacks__frame(m->stacks, frames[i]);

		if (f->kind != FRAME_PYTHON)
			continue;
		if (calls_forward(f)) {
			is_called = true;
		} else if (is_called && is_forward(f)) {
			is_called = false;
			err = add_module(m, path, frames[i]);
		}
	}
	return err;
}

int module_paths__of(struct module_paths *m, u32 stack, u32 *path)
{
	u32 *known = map__get(&m->by_stack, &stack);
	int err = known ? 0 : -ENOMEM;

	*path = 0;
	if (!err && !*known) {
		err = find(m, stack, path);
		*known = *path + 1;
	}
	if (!err)
		*path = *known - 1;
	return err;
}

u32 module_paths__parent(const struct module_paths *m, u32 path)
{
	return ((const struct module_path_key *)map__key(&m->paths, path - 1))->parent;
}

const struct stack_frame *module_paths__frame(const struct module_paths *m, u32 path)
{
	return stacks__frame(m->stacks, ((const struct module_path *)map__value(&m->paths, path - 1))->frame);
}

/* "main.<locals>.Net.forward" is "Net". */
void module_paths__write_class(const struct stack_frame *f, struct text_buffer *text)
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

u32 module_paths__write(const struct module_paths *m, u32 path, struct text_buffer *text)
{
	u32 list[PATH_MODULES_MAX] = { 0 }, depth = 0, n;

	for (; path; path = module_paths__parent(m, path)) {
		if (depth < PATH_MODULES_MAX)
			list[depth] = path;
		depth++;
	}
	n = depth < PATH_MODULES_MAX ? depth : PATH_MODULES_MAX;
	text__add(text, depth > n ? ".. > " : "");
	for (u32 i = n; i > 0; i--) {
		module_paths__write_class(module_paths__frame(m, list[i - 1]), text);
		text__add(text, i > 1 ? " > " : "");
	}
	return depth;
}
