/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which nn.Modules of PyTorch are on a stack: those whose forward() is on it, which Module._call_impl() or a hook's
 * wrapper called. A module's name is that of the class that defines this forward(), so modules of one class at the same
 * place in the path are one.
 */
#pragma once

#include "model/stacks.h"
#include "util/map.h"

struct text_buffer;

struct module_paths {
	const struct stacks *stacks;
	struct map paths; /* struct module_path_key -> struct module_path: numbers of paths, from 1 */
	struct map by_stack; /* u32 stack -> u32 path plus one; 0: not known yet */
};

/* stacks must outlive it. */
void module_paths__init(struct module_paths *m, const struct stacks *stacks);
void module_paths__free(struct module_paths *m);
/* Writes the number of the stack's path to *path, 0 if no module is on it. Returns 0 or -ENOMEM. */
int module_paths__of(struct module_paths *m, u32 stack, u32 *path);
/* Returns the path without its last module; 0: it has no other. */
u32 module_paths__parent(const struct module_paths *m, u32 path);
/* Returns a frame of forward() of the path's last module. */
const struct stack_frame *module_paths__frame(const struct module_paths *m, u32 path);
/* Writes "GPT2Model > GPT2Block > GPT2MLP", of a longer path its end. Returns how many modules are on it. */
u32 module_paths__write(const struct module_paths *m, u32 path, struct text_buffer *text);
/* Writes the class of a frame of forward(): "GPT2MLP", or "forward (net.py:12)" if the frame has no class. */
void module_paths__write_class(const struct stack_frame *f, struct text_buffer *text);
