// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Converts a schema to and from the JSON of a trace's first frame (docs/format.md, "Schema"). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/schema_build.h"
#include "util/array.h"
#include "util/json.h"

static const char *const type_names[] = {
	[FIELD_UNSIGNED] = "unsigned", [FIELD_SIGNED] = "signed", [FIELD_FLOAT] = "float",
	[FIELD_ENUM] = "enum",	       [FIELD_TEXT] = "text",	  [FIELD_TAIL] = "tail",
};

#define ITEMS_MAX 4096 /* families, options, enums, events: names are compared pairwise */
#define N_TYPES	  ARRAY_LEN(type_names)

static bool add_optional(struct cJSON *to, const char *name, const char *text)
{
	return !*text || cJSON_AddStringToObject(to, name, text);
}

/* Appends an empty object to an array. */
static struct cJSON *add_object(struct cJSON *array)
{
	struct cJSON *object = cJSON_CreateObject();

	if (object && !cJSON_AddItemToArray(array, object)) {
		cJSON_Delete(object);
		return NULL;
	}
	return object;
}

static bool add_fields(struct cJSON *to, const struct schema_event *e)
{
	struct cJSON *array = cJSON_AddArrayToObject(to, "fields");
	u32 i;

	for (i = 0; array && i < e->n; i++) {
		const struct schema_field *f = &e->fields[i];
		struct cJSON *o = add_object(array);

		if (!o || !json__add_text(o, "name", f->name) || !json__add_text(o, "type", type_names[f->type]) ||
		    !json__add_u64(o, "size", f->size) || !json__add_u64(o, "offset", f->offset) ||
		    !add_optional(o, "unit", f->unit) || !add_optional(o, "doc", f->doc) ||
		    (f->values && !json__add_text(o, "enum", f->values->name)))
			return false;
	}
	return array;
}

static bool add_events(struct cJSON *to, const struct schema *s)
{
	struct cJSON *array = cJSON_AddArrayToObject(to, "events");
	u32 i;

	for (i = 0; array && i < s->n_events; i++) {
		const struct schema_event *e = &s->events[i];
		struct cJSON *o = add_object(array);

		if (!o || !json__add_u64(o, "id", e->id) || !json__add_text(o, "name", e->name) ||
		    !add_optional(o, "doc", e->doc) || !json__add_u64(o, "size", e->size) || !add_fields(o, e))
			return false;
	}
	return array;
}

static bool add_enums(struct cJSON *to, const struct schema *s)
{
	struct cJSON *array = cJSON_AddArrayToObject(to, "enums"), *o, *values, *v;
	u32 i, j;

	for (i = 0; array && i < s->n_enums; i++) {
		o = add_object(array);
		if (!o || !json__add_text(o, "name", s->enums[i].name))
			return false;
		values = cJSON_AddArrayToObject(o, "values");
		if (!values)
			return false;
		for (j = 0; j < s->enums[i].n; j++) {
			v = add_object(values);
			if (!v || !json__add_text(v, "name", s->enums[i].values[j].name) ||
			    !json__add_s64(v, "value", s->enums[i].values[j].value))
				return false;
		}
	}
	return array;
}

static bool add_families(struct cJSON *to, const struct schema *s)
{
	struct cJSON *array = cJSON_AddArrayToObject(to, "families");
	u32 i;

	for (i = 0; array && i < s->n_families; i++) {
		const struct schema_family *f = &s->families[i];
		struct cJSON *o = add_object(array);

		if (!o || !json__add_u64(o, "id", f->id) || !json__add_text(o, "name", f->name) ||
		    !add_optional(o, "doc", f->doc) || !cJSON_AddBoolToObject(o, "default", f->by_default))
			return false;
	}
	return array;
}

static bool add_options(struct cJSON *to, const struct schema *s)
{
	struct cJSON *array = cJSON_AddArrayToObject(to, "options");
	u32 i;

	for (i = 0; array && i < s->n_options; i++) {
		struct cJSON *o = add_object(array);

		if (!o || !json__add_text(o, "family", s->options[i].family) ||
		    !json__add_text(o, "word", s->options[i].name) || !add_optional(o, "doc", s->options[i].doc))
			return false;
	}
	return array;
}

struct cJSON *schema__to_json(const struct schema *s)
{
	struct cJSON *o = cJSON_CreateObject();

	if (o && add_families(o, s) && add_options(o, s) && add_enums(o, s) && add_events(o, s))
		return o;
	cJSON_Delete(o);
	return NULL;
}

struct parser {
	struct schema *s;
	char *err;
	size_t err_len;
	bool no_memory; /* the schema may be valid, but there was no memory for it */
};

#define FAIL(p, code, ...) schema__fail((p)->err, (p)->err_len, code, __VA_ARGS__)

/*
 * Returns a copy of a text member, or of "" if it is missing and not required (must). Sets *ok to false if a required
 * text is missing or empty, or if there is no memory.
 */
static char *copy_text(struct parser *p, const struct cJSON *o, const char *name, bool must, bool *ok)
{
	const char *text = json__text(o, name);
	char *copy = text || !must ? strdup(text ? text : "") : NULL;

	p->no_memory |= !copy && (text || !must);
	if (!copy || (must && !*copy))
		*ok = false;
	return copy;
}

static u32 count_of(const struct cJSON *o, const char *name, const struct cJSON **first)
{
	const struct cJSON *array = cJSON_GetObjectItemCaseSensitive(o, name);

	*first = cJSON_IsArray(array) ? array->child : NULL;
	return cJSON_IsArray(array) ? cJSON_GetArraySize(array) : 0;
}

static int parse_enum(struct parser *p, struct schema_enum *e, const struct cJSON *o)
{
	const struct cJSON *v;
	bool ok = true;
	u32 n = count_of(o, "values", &v);

	e->name = copy_text(p, o, "name", true, &ok);
	e->values = calloc(n ? n : 1, sizeof(*e->values));
	p->no_memory |= !e->values;
	for (; v && e->values; v = v->next, e->n++) {
		e->values[e->n].name = copy_text(p, v, "name", true, &ok);
		e->values[e->n].value = json__s64(v, "value", &ok);
	}
	return ok && e->values ? 0 : FAIL(p, -EBADMSG, "the schema has an enum without name or values");
}

/*
 * Unknown types of later versions: one with the size of a number is shown as a number, others as text (docs/format.md
 * guarantees that their columns have such a format).
 */
static enum field_type parse_type(const char *text, u32 size)
{
	u32 i;

	for (i = 0; text && i < N_TYPES; i++)
		if (!strcmp(text, type_names[i]))
			return i;
	if (size == 1 || size == 2 || size == 4 || size == 8)
		return FIELD_UNSIGNED;
	return size ? FIELD_TEXT : FIELD_TAIL;
}

static int parse_field(struct parser *p, const struct schema_event *e, struct schema_field *f, const struct cJSON *o)
{
	const char *name;
	bool ok = true;
	u32 i;

	f->name = copy_text(p, o, "name", true, &ok);
	f->doc = copy_text(p, o, "doc", false, &ok);
	f->unit = copy_text(p, o, "unit", false, &ok);
	f->size = json__u64(o, "size", SCHEMA_EVENT_MAX, &ok);
	f->offset = json__u64(o, "offset", SCHEMA_EVENT_MAX, &ok);
	if (!ok)
		return FAIL(p, -EBADMSG, "the schema's event %s has a field without name, size or offset", e->name);
	f->type = parse_type(json__text(o, "type"), f->size);
	if (f->type != FIELD_ENUM)
		return 0;
	name = json__text(o, "enum");
	for (i = 0; name && i < p->s->n_enums; i++)
		if (!strcmp(p->s->enums[i].name, name))
			f->values = &p->s->enums[i];
	return f->values ? 0 : FAIL(p, -EBADMSG, "the schema has no enum for field %s of event %s", f->name, e->name);
}

static int parse_event(struct parser *p, struct schema_event *e, const struct cJSON *o)
{
	const struct cJSON *field;
	bool ok = true;
	u32 n = count_of(o, "fields", &field);
	int err = 0;

	e->name = copy_text(p, o, "name", true, &ok);
	e->doc = copy_text(p, o, "doc", false, &ok);
	e->id = json__u64(o, "id", 0xffff, &ok);
	e->size = json__u64(o, "size", SCHEMA_EVENT_MAX, &ok);
	if (!ok || n > SCHEMA_FIELDS_MAX)
		return FAIL(p, -EBADMSG, "the schema has an event without name, id or size, or with too many fields");
	e->fields = calloc(n ? n : 1, sizeof(*e->fields));
	if (!e->fields)
		return FAIL(p, -ENOMEM, "no memory for the schema");
	for (; field && !err; field = field->next)
		err = parse_field(p, e, &e->fields[e->n++], field);
	return err;
}

static int parse_family(struct parser *p, struct schema_family *f, const struct cJSON *o)
{
	bool ok = true;

	f->name = copy_text(p, o, "name", true, &ok);
	f->doc = copy_text(p, o, "doc", false, &ok);
	f->id = json__u64(o, "id", 0xff, &ok);
	f->by_default = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "default"));
	return ok ? 0 : FAIL(p, -EBADMSG, "the schema has a family without name or id");
}

static int parse_option(struct parser *p, struct schema_option *to, const struct cJSON *o)
{
	bool ok = true;

	to->family = copy_text(p, o, "family", true, &ok);
	to->name = copy_text(p, o, "word", true, &ok);
	to->doc = copy_text(p, o, "doc", false, &ok);
	return ok ? 0 : FAIL(p, -EBADMSG, "the schema has an option without family or word");
}

/* Fills one of the schema's arrays from the JSON array of the same name. */
#define PARSE(p, json, array, one)                                                 \
	({                                                                         \
		const struct cJSON *o_;                                            \
		u32 n_ = count_of(json, #array, &o_);                              \
		int err_ = 0;                                                      \
                                                                                   \
		(p)->s->array = calloc(n_ ? n_ : 1, sizeof(*(p)->s->array));       \
		if (n_ > ITEMS_MAX)                                                \
			err_ = FAIL(p, -EBADMSG, "the schema has %u " #array, n_); \
		else if (!(p)->s->array)                                           \
			err_ = FAIL(p, -ENOMEM, "no memory for the schema");       \
		for (; o_ && !err_; o_ = o_->next)                                 \
			err_ = one(p, &(p)->s->array[(p)->s->n_##array++], o_);    \
		err_;                                                              \
	})

int schema__from_json(struct schema **out, const struct cJSON *json, char *err, size_t err_len)
{
	struct parser p = { calloc(1, sizeof(struct schema)), err, err_len, false };
	int res;

	*out = NULL;
	if (!p.s)
		return FAIL(&p, -ENOMEM, "no memory for the schema");
	res = PARSE(&p, json, families, parse_family);
	if (!res)
		res = PARSE(&p, json, options, parse_option);
	if (!res)
		res = PARSE(&p, json, enums, parse_enum);
	if (!res)
		res = PARSE(&p, json, events, parse_event);
	if (p.no_memory)
		res = FAIL(&p, -ENOMEM, "no memory for the schema");
	if (!res)
		res = schema__finish(p.s, err, err_len);
	if (res)
		schema__free(p.s);
	else
		*out = p.s;
	return res;
}
