// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/schema_build.h"
#include "util/array.h"

int schema__fail(char *err, size_t err_len, int code, const char *fmt, ...)
{
	va_list args;

	if (err && err_len) {
		va_start(args, fmt);
		vsnprintf(err, err_len, fmt, args);
		va_end(args);
	}
	return code;
}

void schema_event__clear(struct schema_event *e)
{
	u32 i;

	for (i = 0; i < e->n; i++) {
		free(e->fields[i].name);
		free(e->fields[i].doc);
		free(e->fields[i].unit);
	}
	free(e->fields);
	free(e->name);
	free(e->doc);
	memset(e, 0, sizeof(*e));
}

void schema_enum__clear(struct schema_enum *e)
{
	u32 i;

	for (i = 0; i < e->n; i++)
		free(e->values[i].name);
	free(e->values);
	free(e->name);
	memset(e, 0, sizeof(*e));
}

void schema__free(struct schema *s)
{
	u32 i;

	if (!s)
		return;
	for (i = 0; i < s->n_events; i++)
		schema_event__clear(&s->events[i]);
	for (i = 0; i < s->n_enums; i++)
		schema_enum__clear(&s->enums[i]);
	for (i = 0; i < s->n_families; i++) {
		free(s->families[i].name);
		free(s->families[i].doc);
	}
	for (i = 0; i < s->n_options; i++) {
		free(s->options[i].family);
		free(s->options[i].name);
		free(s->options[i].doc);
		free(s->options[i].number);
	}
	free(s->events);
	free(s->enums);
	free(s->families);
	free(s->options);
	free(s);
}

void *schema__more(void *array, u32 n, size_t size)
{
	/* Schemas are small and built once: growing by one element is good enough. */
	u8 *more = reallocarray(array, (size_t)n + 1, size);

	if (more)
		memset(more + n * size, 0, size);
	return more;
}

const struct schema_event *schema__event(const struct schema *s, const char *name)
{
	u32 i;

	for (i = 0; i < s->n_events; i++)
		if (!strcmp(s->events[i].name, name))
			return &s->events[i];
	return NULL;
}

static int event_id(const void *key, const void *event)
{
	return (int)*(const u16 *)key - (int)((const struct schema_event *)event)->id;
}

const struct schema_event *schema__event_by_id(const struct schema *s, u16 id)
{
	return s->n_events ? bsearch(&id, s->events, s->n_events, sizeof(*s->events), event_id) : NULL;
}

const struct schema_family *schema__family(const struct schema *s, const char *name)
{
	u32 i;

	for (i = 0; i < s->n_families; i++)
		if (!strcmp(s->families[i].name, name))
			return &s->families[i];
	return NULL;
}

const struct schema_family *schema__family_by_id(const struct schema *s, u8 id)
{
	u32 i;

	for (i = 0; i < s->n_families; i++)
		if (s->families[i].id == id)
			return &s->families[i];
	return NULL;
}

const struct schema_field *schema_event__field(const struct schema_event *e, const char *name)
{
	u32 i;

	for (i = 0; e && i < e->n; i++)
		if (!strcmp(e->fields[i].name, name))
			return &e->fields[i];
	return NULL;
}

const char *schema_field__value_name(const struct schema_field *f, s64 value)
{
	const struct schema_enum *values = f ? f->values : NULL;

	/* most enums count from 0 without gaps */
	if (values && value >= 0 && value < values->n && values->values[value].value == value)
		return values->values[value].name;
	for (u32 i = 0; values && i < values->n; i++)
		if (values->values[i].value == value)
			return values->values[i].name;
	return NULL;
}

/* The fields of struct event, struct span and struct call, in order. */
static const struct {
	const char *name;
	u32 offset, size;
} beginning[] = {
	{ "time", offsetof(struct event, time), 8 },   { "pid", offsetof(struct event, pid), 4 },
	{ "tid", offsetof(struct event, tid), 4 },     { "id", offsetof(struct event, id), 2 },
	{ "probe", offsetof(struct event, probe), 2 }, { "cpu", offsetof(struct event, cpu), 2 },
	{ "flags", offsetof(struct event, flags), 2 }, { "start", offsetof(struct span, start), 8 },
	{ "ret", offsetof(struct call, ret), 8 },
};

#define EVENT_FIELDS 7

/* How many of these fields the event begins with. */
static u32 begins_with(const struct schema_event *e)
{
	u32 i;

	for (i = 0; i < ARRAY_LEN(beginning) && i < e->n; i++) {
		const struct schema_field *f = &e->fields[i];

		if (strcmp(f->name, beginning[i].name) || f->offset != beginning[i].offset ||
		    f->size != beginning[i].size || (f->type != FIELD_UNSIGNED && f->type != FIELD_SIGNED))
			break;
	}
	return i;
}

static int check_field(const struct schema_event *e, u32 i, char *err, size_t err_len)
{
	const struct schema_field *f = &e->fields[i];
	bool number = f->type <= FIELD_ENUM;
	u32 j;

	if (number && f->size != 1 && f->size != 2 && f->size != 4 && f->size != 8)
		return schema__fail(err, err_len, -EINVAL,
				    "event %s, field %s: numbers have 1, 2, 4 or 8 bytes, not %u", e->name, f->name,
				    f->size);
	if (f->type == FIELD_FLOAT && f->size < 4)
		return schema__fail(err, err_len, -EINVAL, "event %s, field %s: floats have 4 or 8 bytes, not %u",
				    e->name, f->name, f->size);
	if ((f->type == FIELD_TEXT) != (!number && f->size))
		return schema__fail(err, err_len, -EINVAL, "event %s, field %s: a text of %u bytes", e->name, f->name,
				    f->size);
	if (f->type == FIELD_TAIL && (i + 1 != e->n || f->offset != e->size))
		return schema__fail(err, err_len, -EINVAL, "event %s: %s is no last field, so it cannot be char %s[]",
				    e->name, f->name, f->name);
	if (f->offset > e->size || f->size > e->size - f->offset)
		return schema__fail(err, err_len, -EINVAL, "event %s: field %s lies outside its %u bytes", e->name,
				    f->name, e->size);
	for (j = 0; j < i; j++)
		if (!strcmp(e->fields[j].name, f->name))
			return schema__fail(err, err_len, -EINVAL, "event %s has two fields %s", e->name, f->name);
	return 0;
}

/* An enum is signed if one of its values is negative. */
static bool is_signed(const struct schema_field *f)
{
	for (u32 i = 0; f->type == FIELD_ENUM && i < f->values->n; i++)
		if (f->values->values[i].value < 0)
			return true;
	return f->type == FIELD_SIGNED;
}

/* Spans measure and points change something, except for these kinds. */
static enum event_role role_of(const struct schema_event *e)
{
	static const struct {
		const char *kind;
		enum event_role role;
	} roles[] = {
		{ "proc_task", EVENT_LISTS },
		{ "proc_image", EVENT_LISTS },
		{ "proc_map", EVENT_LISTS },
		{ "proc_rank", EVENT_LISTS },
		{ "proc_name", EVENT_LISTS },
		{ "proc_python", EVENT_LISTS },
		{ "gil_owner", EVENT_LISTS },
		{ "torch_operator", EVENT_LISTS },
		{ "torch_class", EVENT_LISTS },
		{ "torch_cost", EVENT_LISTS },
		{ "torch_shim", EVENT_DESCRIBES },
		{ "proc_fork", EVENT_DESCRIBES },
		{ "proc_exec", EVENT_DESCRIBES },
		{ "proc_exit", EVENT_DESCRIBES },
		{ "proc_rename", EVENT_DESCRIBES },
		{ "disk_file", EVENT_DESCRIBES },
		{ "syscall_file", EVENT_DESCRIBES },
		{ "syscall_peer", EVENT_DESCRIBES },
		{ "syscall_title", EVENT_DESCRIBES },
		{ "syscall_threshold", EVENT_DESCRIBES },
		{ "lock_site", EVENT_DESCRIBES },
		{ "gpu_device", EVENT_DESCRIBES },
		{ "gpu_context", EVENT_DESCRIBES },
		{ "gpu_stream", EVENT_DESCRIBES },
		{ "gpu_name", EVENT_DESCRIBES },
		{ "gpu_clock", EVENT_DESCRIBES },
		{ "gpu_shim", EVENT_DESCRIBES },
		{ "nvml_device", EVENT_DESCRIBES },
		{ "nvml_process", EVENT_DESCRIBES },
		{ "nvml_value", EVENT_MEASURES },
		{ "nvtx_text", EVENT_DESCRIBES },
		{ "nvtx_category", EVENT_DESCRIBES },
		{ "nvtx_resource", EVENT_DESCRIBES },
		{ "nvtx_payload", EVENT_DESCRIBES },
		{ "nvtx_shim", EVENT_DESCRIBES },
		{ "nvtx_object", EVENT_DESCRIBES },
		{ "functions_text", EVENT_DESCRIBES },
		{ "functions_named", EVENT_DESCRIBES },
		{ "functions_shim", EVENT_DESCRIBES },
		{ "nccl_communicator", EVENT_DESCRIBES },
		{ "nccl_library", EVENT_DESCRIBES },
		{ "cudnn_descriptor", EVENT_DESCRIBES },
		/* a program mostly makes its handles once, when it begins */
		{ "cuda_stream", EVENT_DESCRIBES },
		{ "cuda_graph", EVENT_DESCRIBES },
		{ "cudadrv_function", EVENT_DESCRIBES },
		{ "cudadrv_module", EVENT_DESCRIBES },
		{ "cudadrv_context", EVENT_DESCRIBES },
		{ "cudadrv_stream", EVENT_DESCRIBES },
		{ "cudadrv_graph", EVENT_DESCRIBES },
		{ "nccl_comm", EVENT_DESCRIBES },
		{ "nccl_reduction", EVENT_DESCRIBES },
		{ "gil_slice", EVENT_DESCRIBES }, /* when the GIL was measured */
		{ "gil_drop", EVENT_MEASURES },
		{ "sample_cpu", EVENT_MEASURES },
		{ "sample_tasks", EVENT_MEASURES },
		{ "sample_wake", EVENT_MEASURES },
		{ "sched_throttle", EVENT_MEASURES },
		{ "sched_memory", EVENT_MEASURES },
		{ "sched_other", EVENT_MEASURES },
		{ "net_retransmit", EVENT_MEASURES },
	};

	for (size_t i = 0; i < ARRAY_LEN(roles); i++)
		if (!strcmp(e->name, roles[i].kind))
			return roles[i].role;
	return !EVENT_FAMILY(e->id) ? EVENT_LISTS : e->is_span ? EVENT_MEASURES : EVENT_CHANGES;
}

static int finish_event(struct schema_event *e, char *err, size_t err_len)
{
	u32 i, begins;
	int res;

	if (e->n > SCHEMA_FIELDS_MAX || e->size > SCHEMA_EVENT_MAX)
		return schema__fail(err, err_len, -EINVAL, "event %s: %u fields in %u bytes are too many (%u in %u)",
				    e->name, e->n, e->size, SCHEMA_FIELDS_MAX, SCHEMA_EVENT_MAX);
	begins = begins_with(e);
	if (begins < EVENT_FIELDS)
		return schema__fail(err, err_len, -EINVAL, "event %s does not begin with struct event", e->name);
	e->is_span = begins > EVENT_FIELDS;
	e->is_call = begins > EVENT_FIELDS + 1;
	e->role = role_of(e);
	for (i = 0; i < e->n; i++) {
		e->fields[i].index = i;
		res = check_field(e, i, err, err_len);
		if (res)
			return res;
		e->fields[i].is_signed = is_signed(&e->fields[i]);
	}
	return 0;
}

static int by_event_id(const void *a, const void *b)
{
	return (int)((const struct schema_event *)a)->id - (int)((const struct schema_event *)b)->id;
}

static int by_family_id(const void *a, const void *b)
{
	return (int)((const struct schema_family *)a)->id - (int)((const struct schema_family *)b)->id;
}

static int check_families(const struct schema *s, char *err, size_t err_len)
{
	u32 i, j;

	for (i = 0; i < s->n_families; i++) {
		const struct schema_family *a = &s->families[i];

		for (j = 0; j < i; j++) {
			const struct schema_family *b = &s->families[j];

			if (a->id == b->id)
				return schema__fail(err, err_len, -EEXIST, "families %s and %s both have id 0x%02x",
						    b->name, a->name, a->id);
			if (!strcmp(a->name, b->name))
				return schema__fail(err, err_len, -EEXIST, "family %s has two ids, 0x%02x and 0x%02x",
						    a->name, b->id, a->id);
		}
	}
	return 0;
}

int schema__finish(struct schema *s, char *err, size_t err_len)
{
	u32 i, j;
	int res;

	if (s->n_events)
		qsort(s->events, s->n_events, sizeof(*s->events), by_event_id);
	if (s->n_families)
		qsort(s->families, s->n_families, sizeof(*s->families), by_family_id);
	for (i = 0; i < s->n_events; i++) {
		res = finish_event(&s->events[i], err, err_len);
		if (res)
			return res;
		if (i && s->events[i - 1].id == s->events[i].id)
			return schema__fail(err, err_len, -EEXIST, "events %s and %s both have id 0x%04x",
					    s->events[i - 1].name, s->events[i].name, s->events[i].id);
		for (j = 0; j < i; j++)
			if (!strcmp(s->events[j].name, s->events[i].name))
				return schema__fail(err, err_len, -EEXIST, "two events %s, ids 0x%04x and 0x%04x",
						    s->events[i].name, s->events[j].id, s->events[i].id);
	}
	return check_families(s, err, err_len);
}

bool schema_field__is_task(const struct schema_field *f)
{
	/* older traces have no unit for pid and tid */
	return f->type == FIELD_UNSIGNED && f->size == 4 &&
	       (!strcmp(f->unit, "task") || !strcmp(f->name, "pid") || !strcmp(f->name, "tid"));
}
