// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Ends and begins slices of time. The worker runs these iterators over its own process only. */
#include "slices.bpf.h"
#include "sonde.bpf.h"

u64 slices_stopped = 0;
u64 slices_resumed = 0;

/* Before the programs are detached. */
SEC("?iter/task")
int core_slices_pause(struct bpf_iter__task *ctx)
{
	if (!slices_stopped)
		slices_stopped = bpf_ktime_get_ns();
	return 0;
}

/* After the programs were attached again. */
SEC("?iter/task")
int core_slices_resume(struct bpf_iter__task *ctx)
{
	struct meta_unmeasured e = { .start = slices_stopped };

	if (!e.start)
		return 0;
	slices_resumed = e.event.time = bpf_ktime_get_ns();
	e.event.id = ID_meta_unmeasured;
	slices_stopped = 0;
	iter__write(ctx->meta->seq, &e, sizeof(e));
	return 0;
}
