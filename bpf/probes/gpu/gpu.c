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

static const struct shim_form forms[] = {
	[SHIM_KERNEL] = { FORM_SPAN(shim_kernel) },  [SHIM_MEMCPY] = { FORM_SPAN(shim_memcpy) },
	[SHIM_MEMSET] = { FORM_SPAN(shim_memset) },  [SHIM_SYNCHRONIZATION] = { FORM_SPAN(shim_sync) },
	[SHIM_GRAPH] = { FORM_SPAN(shim_graph) },    [SHIM_ALLOCATION] = { FORM_EVENT(shim_allocation) },
	[SHIM_POOL] = { FORM_EVENT(shim_pool) },     [SHIM_CALL] = { FORM_SPAN(shim_call) },
	[SHIM_DEVICE] = { FORM_EVENT(shim_device) }, [SHIM_CONTEXT] = { FORM_EVENT(shim_context) },
	[SHIM_STREAM] = { FORM_EVENT(shim_stream) }, [SHIM_NAME] = { FORM_TEXT(shim_name) },
	[SHIM_CLOCK] = { FORM_EVENT(shim_clock) },   [SHIM_DROPPED] = { FORM_EVENT(shim_dropped) },
	[SHIM_STATE] = { FORM_TEXT(shim_state) },
};

static const struct shim_user user = {
	.family = "gpu",
	.control = "gpu_control",
	SHIM_FORMS(forms),
	.state = ID_gpu_shim,
	.ended = ended,
};

static void object_mapped(struct session *s, struct file_facts *file, const void *facts, const struct mapping *m)
{
	u32 skip = session__option(s, "gpu", "nodes") ? SHIM_GRAPHS : SHIM_NODES;

	session__request_records(s, &user, facts, m, SHIM_CUPTI_GROUPS & ~(1U << skip));
}

static void event(struct session *s, const struct event *e, u32 size)
{
	session__note_shim(s, &user, e, size);
}

static const struct family_part parts[] = {
	FAMILY_WHOLE("gpu_records"),
	FAMILY_WHOLE("gpu_control"),
	FAMILY_PARTS_END,
};

FAMILY_HOST(gpu_host) = {
	.name = "gpu",
	.parts = parts,
	SHIM_HOST,
	.object_mapped = object_mapped,
	.event = event,
	.sizes = shim_user__sizes,
};
