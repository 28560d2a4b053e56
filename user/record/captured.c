// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * For tests (SONDE_TEST=captured): does what a compromised worker could try, and prints the results. docs/security.md
 * claims that all of it is refused.
 */
#include "core/python.h"
#include "record/internal.h"
#include "sandbox/captured.h"

#include <bpf/bpf.h>

/* Writes to maps directly, and by requests to the attacher for steering maps. */
static void try_maps(struct session *s)
{
	struct python_process process = { .runtime = (u64)(uintptr_t)s, .code_type = (u64)(uintptr_t)s };
	struct python_layout layout = { .interpreters = 64U << 20 };
	struct python_file where = { .layout = PYTHON_LAYOUTS };
	struct python_file_key file = {};
	u32 key = 1, index = PYTHON_LAYOUTS - 1;

	captured__print("write a map that it reads",
			bpf_map_update_elem(session__map_fd(s, "python_processes"), &key, &process, BPF_ANY));
	captured__print("write a map that it does not have",
			bpf_map_update_elem(session__map_fd(s, "python_layouts"), &index, &layout, BPF_ANY));
	captured__print("steer reads to a stack or heap",
			session__map_set(s, "python_processes", &key, &process, BPF_ANY));
	captured__print("steer reads by a strange layout",
			session__map_set(s, "python_layouts", &index, &layout, BPF_ANY));
	layout.interpreters = 8;
	captured__print("set a layout", session__map_set(s, "python_layouts", &index, &layout, BPF_ANY));
	layout.interpreters = 16;
	captured__print("change a layout", session__map_set(s, "python_layouts", &index, &layout, BPF_ANY));
	captured__print("steer reads by a strange file", session__map_set(s, "python_files", &file, &where, BPF_ANY));
	captured__print("set the filter of processes", session__map_set(s, "processes", &key, &index, BPF_ANY));
}

void captured__try(struct session *s)
{
	static bool tried;

	if (tried || !session__test_switch("captured"))
		return;
	tried = true;
	captured__try_calls();
	try_maps(s);
}
