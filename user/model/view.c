// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/view.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>

#include "util/saturate.h"

bool view__of_record(struct view *v, const struct schema *s, const void *record, u32 size)
{
	struct event head;

	memset(v, 0, sizeof(*v));
	if (size < sizeof(head))
		return false;
	memcpy(&head, record, sizeof(head));
	v->event = schema__event_by_id(s, head.id);
	v->record = record;
	v->size = size;
	return v->event && size >= v->event->size;
}

s64 view__s64(const struct view *v, const struct schema_field *f)
{
	u64 raw = 0;

	if (!f)
		return 0;
	if (v->rows)
		return rows__s64(v->rows, f, v->i);
	if (f->type == FIELD_TEXT || f->type == FIELD_TAIL || f->size > 8 || f->offset > v->size ||
	    f->size > v->size - f->offset)
		return 0;
	if (f->type == FIELD_FLOAT)
		return saturate__s64(view__double(v, f));
	memcpy(&raw, (const char *)v->record + f->offset, f->size);
	if (f->size == 8 || !f->size || !f->is_signed)
		return (s64)raw;
	raw <<= 64 - 8 * f->size;
	return (s64)raw >> (64 - 8 * f->size);
}

double view__double(const struct view *v, const struct schema_field *f)
{
	double d = 0;
	float s = 0;

	if (!f)
		return 0;
	if (v->rows)
		return rows__double(v->rows, f, v->i);
	if (f->type != FIELD_FLOAT)
		return (double)view__s64(v, f);
	if (f->offset > v->size || f->size > v->size - f->offset)
		return 0;
	if (f->size == sizeof(d)) {
		memcpy(&d, (const char *)v->record + f->offset, sizeof(d));
	} else if (f->size == sizeof(s)) {
		memcpy(&s, (const char *)v->record + f->offset, sizeof(s));
		d = (double)s;
	}
	return d;
}

const char *view__text(const struct view *v, const struct schema_field *f, u32 *len)
{
	const char *text;

	*len = 0;
	if (!f || (f->type != FIELD_TEXT && f->type != FIELD_TAIL))
		return "";
	if (v->rows) {
		text = rows__text(v->rows, f, v->i, len);
	} else {
		if (f->offset > v->size)
			return "";
		text = (const char *)v->record + f->offset;
		*len = v->size - f->offset;
		if (f->type == FIELD_TEXT && f->size < *len)
			*len = f->size;
	}
	*len = (u32)strnlen(text, *len);
	return text;
}

s64 view__get(const struct view *v, const char *name)
{
	return view__s64(v, schema_event__field(v->event, name));
}

const char *schema_field__constant(const struct schema_field *f, s64 value)
{
	/* values are untrusted: INT64_MIN has no negation, and larger ones don't fit the C library's int */
	if (!strcmp(f->unit, "errno") && value < 0 && value >= -INT_MAX)
		return strerrorname_np((int)-value);
	if (!strcmp(f->unit, "signal") && value > 0 && value <= INT_MAX)
		return sigabbrev_np((int)value);
	return NULL;
}

struct common_fields common_fields__of(const struct schema_event *e)
{
	/* the schema's check has seen that events begin with struct event, and spans and calls with theirs */
	return (struct common_fields){
		.time = &e->fields[0],
		.pid = &e->fields[1],
		.tid = &e->fields[2],
		.probe = &e->fields[4],
		.cpu = &e->fields[5],
		.flags = &e->fields[6],
		.start = e->is_span ? &e->fields[7] : NULL,
		.ret = e->is_call ? &e->fields[8] : NULL,
	};
}
