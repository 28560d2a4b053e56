/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the name of each operator that is called boxed, and of each class of backward nodes, once: at its first use. */
#pragma once

#include "core/sonde.bpf.h"
#include "torch.h"

struct torch_key {
	u32 pid;
	u32 unused;
	u64 address;
};

/* How calls of a boxed operator are recorded. */
enum torch_kind {
	TORCH_OBSERVED = 1, /* as calls of an operator */
	TORCH_UNOBSERVED, /* not at all, as torch.profiler does not record them, either */
	TORCH_RANGE_BEGINS,
	TORCH_RANGE_ENDS,
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct torch_key);
	__type(value, u32); /* enum torch_kind */
} torch_operators SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct torch_key);
	__type(value, u32);
} torch_classes SEC(".maps");

/* Reads the text of the std::string (libstdc++) at this address, and cuts it off after room - 1 bytes. */
static __always_inline void torch__string(char *to, u32 room, u64 at)
{
	u64 text = 0;

	if (!bpf_probe_read_user(&text, sizeof(text), (const void *)at))
		bpf_probe_read_user_str(to, room, (const void *)text);
}

/* PyTorch does not report calls of these operators to profilers: ATen/core/dispatch/ObservedOperators.cpp. */
const char torch_name_begin[] = "profiler::_record_function_enter_new";
const char torch_name_end[] = "profiler::_record_function_exit";
const char torch_name_old_begin[] = "profiler::_record_function_enter";
const char torch_name_size[] = "aten::size";
const char torch_name_is_leaf[] = "aten::is_leaf";
const char torch_name_output_nr[] = "aten::output_nr";
const char torch_name_version[] = "aten::_version";
const char torch_name_is_complex[] = "aten::is_complex";

/* operator: a buffer longer than text. The comparison includes text's NUL, so a name that only begins so differs. */
#define TORCH_IS(operator, text) (!bpf_strncmp((operator), sizeof(text), (text)))

static __always_inline u32 torch__kind(const char *name)
{
	if (TORCH_IS(name, torch_name_begin))
		return TORCH_RANGE_BEGINS;
	if (TORCH_IS(name, torch_name_end))
		return TORCH_RANGE_ENDS;
	if (TORCH_IS(name, torch_name_old_begin) || TORCH_IS(name, torch_name_size) ||
	    TORCH_IS(name, torch_name_is_leaf) || TORCH_IS(name, torch_name_output_nr) ||
	    TORCH_IS(name, torch_name_version) || TORCH_IS(name, torch_name_is_complex))
		return TORCH_UNOBSERVED;
	return TORCH_OBSERVED;
}

/*
 * Returns the enum torch_kind of an operator. definition: address of its OperatorDef, which begins with the operator's
 * name and overload, each of string_size bytes. A name that can't be read is read again at the next call: its page may
 * not be in memory yet.
 */
__weak __noinline int torch__operator(u64 definition, u32 string_size)
{
	struct torch_key key = { .pid = bpf_get_current_pid_tgid() >> 32, .address = definition };
	u32 *known = bpf_map_lookup_elem(&torch_operators, &key), kind;
	struct torch_operator e = {};

	if (known)
		return *known;
	event__init(&e.event, ID_torch_operator, 0, bpf_ktime_get_ns());
	e.handle = definition;
	torch__string(e.name, sizeof(e.name), definition);
	torch__string(e.overload, sizeof(e.overload), definition + string_size);
	if (!*e.name) {
		loss__count(EVENT_FAMILY(ID_torch_op), LOSS_READ, e.event.time);
		return TORCH_OBSERVED;
	}
	kind = torch__kind(e.name);
	if (bpf_map_update_elem(&torch_operators, &key, &kind, BPF_ANY))
		loss__count(EVENT_FAMILY(ID_torch_op), LOSS_MAP_FULL, e.event.time);
	if (kind == TORCH_OBSERVED)
		emit(&e, sizeof(e));
	return kind;
}

/*
 * Emits the name of the class with this vtable, once. The word before the vtable is the address of the class's
 * std::type_info, whose second word is the address of the name (Itanium C++ ABI). The name lies in libtorch's file, and
 * a BPF program can't bring a page of a file into memory: until the process has the page, each call tries again.
 */
__weak __noinline int torch__class(u64 vtable)
{
	struct torch_key key = { .pid = bpf_get_current_pid_tgid() >> 32, .address = vtable };
	u64 info = 0, name = 0;
	struct torch_class e = {};
	u32 known = 1;

	if (bpf_map_lookup_elem(&torch_classes, &key))
		return 0;
	event__init(&e.event, ID_torch_class, 0, bpf_ktime_get_ns());
	e.vtable = vtable;
	if (!bpf_probe_read_user(&info, sizeof(info), (const void *)(vtable - sizeof(u64))) &&
	    !bpf_probe_read_user(&name, sizeof(name), (const void *)(info + sizeof(u64))))
		bpf_probe_read_user_str(e.name, sizeof(e.name), (const void *)name);
	if (!*e.name)
		return 0;
	if (bpf_map_update_elem(&torch_classes, &key, &known, BPF_ANY))
		loss__count(EVENT_FAMILY(ID_torch_op), LOSS_MAP_FULL, e.event.time);
	emit(&e, sizeof(e));
	return 0;
}
