/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --torch=stacks: calls of nn.Modules. Module._call_impl() begins with torch._C._get_tracing_state(), so a hit at the
 * function that this calls is the start of a module's call if Module._call_impl() is on top of the Python stack. Frames
 * of CPython before 3.11 do not have self where it is read here.
 */
#ifndef SONDE_TORCH_MODULE_BPF_H
#define SONDE_TORCH_MODULE_BPF_H

#include "torch_stack.bpf.h"

/* Include/object.h, Include/cpython/object.h, Include/internal/pycore_cell.h */
#define OBJECT_TYPE 8
#define TYPE_NAME   24
#define CELL_OBJECT 16

const char torch_name_call[] = "Module._call_impl";

/* Does the frame execute Module._call_impl()? Functions have qualified names from 3.11 on. */
static __always_inline bool torch__calls_module(const struct python_layout *l, u64 frame)
{
	char name[sizeof(torch_name_call)] = "";
	u64 code = 0, text = 0;

	bpf_probe_read_user(&code, sizeof(code), (const void *)(frame + l->frame_code));
	/* from 3.14 on the lowest bits are a tag */
	code &= ~7ULL;
	bpf_probe_read_user(&text, sizeof(text), (const void *)(code + l->code_name));
	bpf_probe_read_user(name, sizeof(name), (const void *)(text + l->str_ascii));
	return l->version >= 0x030b && !bpf_strncmp(name, sizeof(name), torch_name_call);
}

/* The frame's first local variable (localsplus): Include/internal/pycore_frame.h */
static __always_inline u64 torch__first_local(const struct python_layout *l, u64 frame)
{
	u64 local = 0;

	bpf_probe_read_user(&local, sizeof(local), (const void *)(frame + (l->version < 0x030e ? 72 : 80)));
	return local & ~7ULL;
}

/* Writes the name of the object's class. */
static __always_inline void torch__class_name(char *to, u32 room, u64 object)
{
	u64 type = 0, name = 0;

	if (!bpf_probe_read_user(&type, sizeof(type), (const void *)(object + OBJECT_TYPE)) &&
	    !bpf_probe_read_user(&name, sizeof(name), (const void *)(type + TYPE_NAME)))
		bpf_probe_read_user_str(to, room, (const void *)name);
}

const char torch_name_cell[] = "cell";

/*
 * Fills the module that the function in this frame is called with, and its class. As functions within _call_impl()
 * refer to its self, that is a cell there, which has the object.
 */
static __always_inline void torch__self(struct torch_module *e, const struct python_layout *l, u64 frame)
{
	e->module = torch__first_local(l, frame);
	torch__class_name(e->name, sizeof(e->name), e->module);
	if (!bpf_strncmp(e->name, sizeof(torch_name_cell), torch_name_cell)) {
		bpf_probe_read_user(&e->module, sizeof(e->module), (const void *)(e->module + CELL_OBJECT));
		torch__class_name(e->name, sizeof(e->name), e->module);
	}
}

#endif
