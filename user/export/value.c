// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "export/value.h"

#include <string.h>

#include "model/nvtx.h"
#include "util/array.h"

static void set_text(struct field_value *out, const char *text)
{
	out->type = FIELD_IS_TEXT;
	out->text = text;
	out->len = (u32)strlen(text);
	out->lasts = true;
}

void field_value__get(struct field_value *out, const struct names *names, const struct view *v,
		      const struct schema_field *f, bool symbolic)
{
	const char *name;
	bool is_double;

	*out = (struct field_value){ 0 };
	if (f->type == FIELD_TEXT || f->type == FIELD_TAIL) {
		out->type = FIELD_IS_TEXT;
		out->text = view__text(v, f, &out->len);
		return;
	}
	if (f->type == FIELD_FLOAT) {
		out->type = FIELD_IS_DOUBLE;
		out->d = view__double(v, f);
		return;
	}
	if (nvtx__value(v, f, &is_double, &out->d, &out->s)) {
		out->type = is_double ? FIELD_IS_DOUBLE : FIELD_IS_S64;
		return;
	}
	out->s = view__s64(v, f);
	if (schema_field__is_task(f))
		out->s = names__number(names, (u32)out->s);
	out->u = (u64)out->s;
	name = names__text_of(names, v, f);
	if (name) {
		set_text(out, name);
		return;
	}
	name = f->type == FIELD_ENUM ? schema_field__value_name(f, out->s) :
	       symbolic		     ? schema_field__constant(f, out->s) :
				       NULL;
	if (name)
		set_text(out, name);
	else if (!strcmp(f->unit, "string"))
		set_text(out, names__string(names, (u32)out->s));
	else if (!strcmp(f->unit, "hex"))
		out->type = FIELD_IS_HEX;
	else
		out->type = f->type == FIELD_UNSIGNED ? FIELD_IS_U64 : FIELD_IS_S64;
}

bool field__is_common(const struct schema_event *e, const struct schema_field *f)
{
	return f->offset < (e->is_span ? sizeof(struct span) : sizeof(struct event));
}

bool field__is_stack(const struct schema_field *f)
{
	return (f->type == FIELD_UNSIGNED || f->type == FIELD_SIGNED) && !strcmp(f->unit, "stack");
}

bool event__has_torch_name(const struct schema_event *e)
{
	static const char *const kinds[] = { "torch_op", "torch_node", "torch_class" };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (!strcmp(e->name, kinds[i]))
			return true;
	return false;
}

const char *event__title(const struct names *names, const struct view *v, u16 probe, char *buf, size_t size)
{
	const char *name = v->event->is_span ? names__torch(names, v, buf, size) : NULL;
	const struct schema_field *nr;

	if (!name)
		name = names__nvtx(names, v, buf, size);
	if (v->event->is_call) {
		/* One probe records all system calls, so the field nr has the name. */
		nr = schema_event__field(v->event, "nr");
		if (nr && nr->type == FIELD_ENUM)
			name = schema_field__value_name(nr, view__s64(v, nr));
		if (!name && !nr && probe)
			name = names__probe(names, probe);
	}
	return name ? name : v->event->name;
}

const char *event_flag__text(u16 bit)
{
	switch (bit) {
	case EVENT_OPEN:
		return "not returned";
	case EVENT_RETURN_NOT_SEEN:
		return "return not seen";
	case EVENT_NO_DURATION:
		return "only entry seen";
	case EVENT_STARTED_BEFORE:
		return "began before tracing";
	default:
		return NULL;
	}
}
