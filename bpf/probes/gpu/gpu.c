// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Host code of the records of CUPTI's activities, which the shim makes (record/shims.c). */
#include "gpu.h"

#include "record/family.h"

#define DROPPED_BY_END 4 /* shim_dropped.reason */

/* Counts what CUPTI had not delivered when a process was killed or called _exit: the number of records is unknown. */
static void ended(struct session *s, u32 pid)
{
	struct gpu_dropped d = {
		.event = { .time = session__now(s), .pid = pid, .tid = pid, .id = ID_gpu_dropped },
		.dropped.reason = DROPPED_BY_END,
	};

	session__emit(s, &d, sizeof(d));
}

static const struct shim_user user = { .family = "gpu", .control = "gpu_control", .ended = ended };

static void object_mapped(struct session *s, struct file_facts *file, const void *facts, const struct mapping *m)
{
	u32 skip = session__option(s, "gpu", "nodes") ? SHIM_GRAPHS : SHIM_NODES;

	session__request_records(s, &user, facts, m, SHIM_CUPTI_GROUPS & ~(1U << skip));
}

static void event(struct session *s, const struct event *e, u32 size)
{
	const struct gpu_shim *r = (const struct gpu_shim *)e;

	if (e->id == ID_gpu_shim && size >= sizeof(*r))
		session__note_shim(s, &user, e->pid, r->shim.state, r->text, size - (u32)sizeof(*r));
}

static const struct family_part parts[] = {
	FAMILY_WHOLE("gpu_records"),
	FAMILY_WHOLE("gpu_control"),
	FAMILY_PARTS_END,
};

FAMILY_HOST(gpu_host) = {
	.name = "gpu",
	.parts = parts,
	.prepare = session__prepare_shims,
	.is_runtime = shim_user__is_runtime,
	.sites = shim_user__sites,
	.object_mapped = object_mapped,
	.event = event,
	.tick = shim_user__tick,
	.has_more_records = shim_user__has_more,
	.sizes = shim_user__sizes,
};
