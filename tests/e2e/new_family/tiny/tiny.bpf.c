// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "core/sonde.bpf.h"
#include "tiny.h"

/* int tiny_work(void *data, size_t bytes) */
SPAN(tiny_work, "libtiny.so:tiny_work", tiny_work)
{
	e->bytes = ARG2(ctx);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(tiny_forked, struct task_struct *parent, struct task_struct *child)
{
	struct tiny_fork e = {};

	if (!process__is_selected(parent->tgid))
		return 0;
	event__init(&e.event, ID_tiny_fork, 0, bpf_ktime_get_ns());
	e.child_pid = child->tgid;
	emit(&e, sizeof(e));
	return 0;
}
