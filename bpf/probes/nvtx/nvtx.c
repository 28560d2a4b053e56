// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Host code of the records of NVTX, which the shim makes (record/shims.c). */
#include "nvtx.h"
#include "probes/proc/proc.h"

#include "record/family.h"

static const struct shim_form forms[] = {
	[NVTX_RANGE] = { FORM_SPAN(shim_nvtx_range) },
	[NVTX_MARK] = { FORM_EVENT(shim_nvtx_mark) },
	[NVTX_TEXT] = { FORM_TEXT(shim_nvtx_text) },
	[NVTX_CATEGORY] = { FORM_EVENT(shim_nvtx_category) },
	[NVTX_RESOURCE] = { FORM_TEXT(shim_nvtx_resource) },
	[NVTX_PAYLOAD] = { FORM_TEXT(shim_nvtx_payload) },
	[NVTX_COUNTER] = { FORM_EVENT(shim_nvtx_counter) },
	[NVTX_DROPPED] = { FORM_EVENT(shim_nvtx_dropped) },
	[NVTX_STATE] = { FORM_TEXT(shim_state) },
	[NVTX_OBJECT] = { FORM_TEXT(shim_nvtx_object) },
};

static const struct shim_user user = {
	.family = "nvtx",
	.control = "nvtx_control",
	SHIM_FORMS(forms),
	.state = ID_nvtx_shim,
	.dropped = ID_nvtx_dropped,
	.ended_reason = NVTX_PROCESS_ENDED,
};

static void object_mapped(struct session *s, struct file_facts *file, const void *facts, const struct mapping *m)
{
	session__request_records(s, &user, facts, m, 1U << SHIM_NVTX);
}

/* The name that the program gives a thread is the thread's name everywhere. */
static void note_name(struct session *s, const struct nvtx_resource *r, u32 size)
{
	struct proc_name p = { .event = r->event };
	char name[64];

	if (r->resource.kind != NVTX_OS_THREAD)
		return;
	snprintf(name, sizeof(name), "%.*s", (int)(size - sizeof(*r)), r->name);
	p.event.id = ID_proc_name;
	p.event.tid = session__tid_of(s, r->event.pid, (u32)r->resource.handle);
	/* the main thread has the process's name */
	if (p.event.tid == p.event.pid)
		return;
	p.name = session__intern(s, name);
	session__emit(s, &p, sizeof(p));
}

static void event(struct session *s, const struct event *e, u32 size)
{
	if (e->id == ID_nvtx_resource && size >= sizeof(struct nvtx_resource))
		note_name(s, (const struct nvtx_resource *)e, size);
	session__note_shim(s, &user, e, size);
}

static const struct family_part parts[] = {
	FAMILY_WHOLE("nvtx_records"),
	FAMILY_WHOLE("nvtx_control"),
	FAMILY_PARTS_END,
};

FAMILY_HOST(nvtx_host) = {
	.name = "nvtx",
	.parts = parts,
	SHIM_HOST,
	.object_mapped = object_mapped,
	.cut = session__translate_tid,
	.event = event,
};
