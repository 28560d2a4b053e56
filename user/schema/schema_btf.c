// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Builds a schema from the BPF object's BTF: structs, and the tags that bpf/core/event.h puts on them. */
#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/schema_build.h"

#define NESTING_MAX 8
#define ENUMS_MAX   256

struct builder {
	struct schema *s;
	const struct btf *btf;
	const struct btf_type **tags; /* all declaration tags */
	u32 n_tags;
	/* the number of each type's first tag (0: none), and that of the next tag of the same type, by tag */
	u32 *first, *next;
	u32 enum_ids[ENUMS_MAX]; /* BTF type of each enum in s */
	char *err;
	size_t err_len;
};

#define FAIL(b, code, ...) schema__fail((b)->err, (b)->err_len, code, __VA_ARGS__)

static int no_memory(struct builder *b)
{
	return FAIL(b, -ENOMEM, "no memory for the schema");
}

static const char *name_of(const struct builder *b, const struct btf_type *t)
{
	return btf__name_by_offset(b->btf, t->name_off);
}

/* The text after prefix in a tag of a type (component -1) or of one of its members; NULL if there is none. */
static const char *find_tag(const struct builder *b, u32 type, int component, const char *prefix)
{
	size_t len = strlen(prefix);

	for (u32 i = b->first[type]; i; i = b->next[i - 1]) {
		const struct btf_type *t = b->tags[i - 1];
		const char *text = name_of(b, t);

		if (btf_decl_tag(t)->component_idx == component && !strncmp(text, prefix, len))
			return text + len;
	}
	return NULL;
}

static char *copy_tag(const struct builder *b, u32 type, int component, const char *prefix)
{
	const char *text = find_tag(b, type, component, prefix);

	return strdup(text ? text : "");
}

/* The type behind typedefs and qualifiers; *id gets its id. */
static const struct btf_type *resolve(const struct builder *b, u32 *id)
{
	const struct btf_type *t = btf__type_by_id(b->btf, *id);

	while (t && (btf_is_mod(t) || btf_is_typedef(t))) {
		*id = t->type;
		t = btf__type_by_id(b->btf, *id);
	}
	return t;
}

static int enum_values(struct builder *b, const struct btf_type *t, struct schema_enum *e)
{
	u32 i, n = btf_vlen(t);
	bool is_signed = btf_kflag(t);

	e->values = calloc(n ? n : 1, sizeof(*e->values));
	if (!e->values)
		return no_memory(b);
	for (i = 0; i < n; i++) {
		u32 name;

		if (btf_is_enum64(t)) {
			name = btf_enum64(t)[i].name_off;
			e->values[i].value = btf_enum64_value(&btf_enum64(t)[i]);
		} else {
			name = btf_enum(t)[i].name_off;
			e->values[i].value = is_signed ? (s64)btf_enum(t)[i].val : (s64)(u32)btf_enum(t)[i].val;
		}
		e->values[i].name = strdup(btf__name_by_offset(b->btf, name));
		if (!e->values[i].name)
			return no_memory(b);
		e->n++;
	}
	return 0;
}

static bool same_text(const char *a, const char *b)
{
	return !strcmp(a, b);
}

static bool same_enum(const struct schema_enum *a, const struct schema_enum *b)
{
	u32 i;

	if (a == b)
		return true;
	if (!a || !b || a->n != b->n || !same_text(a->name, b->name))
		return false;
	for (i = 0; i < a->n; i++)
		if (a->values[i].value != b->values[i].value || !same_text(a->values[i].name, b->values[i].name))
			return false;
	return true;
}

/* The enum in s->enums, added if it is new; an anonymous one gets the name `unnamed`. */
static int add_enum(struct builder *b, u32 id, const struct btf_type *t, const char *unnamed,
		    const struct schema_enum **out)
{
	const char *name = t->name_off ? name_of(b, t) : unnamed;
	struct schema *s = b->s;
	struct schema_enum *e = &s->enums[s->n_enums];
	u32 i;
	int err;

	for (i = 0; i < s->n_enums; i++)
		if (b->enum_ids[i] == id)
			goto found;
	if (s->n_enums == ENUMS_MAX)
		return FAIL(b, -E2BIG, "more than %u enums in the events", ENUMS_MAX);
	/* allocated for all enums at the start, because fields point into the array */
	b->enum_ids[s->n_enums++] = id;
	e->name = strdup(name);
	err = e->name ? enum_values(b, t, e) : no_memory(b);
	if (err)
		return err;
	for (i = 0; i + 1 < s->n_enums && strcmp(s->enums[i].name, name); i++)
		;
	if (i + 1 < s->n_enums) { /* it is declared in several object files */
		if (!same_enum(&s->enums[i], e))
			return FAIL(b, -EINVAL, "two enums %s with different values", name);
		schema_enum__clear(e);
		s->n_enums--;
	}
found:
	*out = &s->enums[i];
	return 0;
}

static bool is_char(const struct builder *b, u32 id)
{
	const struct btf_type *t = resolve(b, &id);

	return t && btf_is_int(t) && t->size == 1 && !strcmp(name_of(b, t), "char");
}

/* Type and size of a field; returns 0 or -EINVAL. */
static int field_type(struct builder *b, const struct schema_event *e, struct schema_field *f, u32 id)
{
	const struct btf_type *t = resolve(b, &id);
	char unnamed[256];

	if (t && btf_is_int(t)) {
		f->type = btf_int_encoding(t) & BTF_INT_SIGNED ? FIELD_SIGNED : FIELD_UNSIGNED;
		f->size = t->size;
	} else if (t && btf_kind(t) == BTF_KIND_FLOAT) {
		f->type = FIELD_FLOAT;
		f->size = t->size;
	} else if (t && btf_is_any_enum(t)) {
		f->type = FIELD_ENUM;
		f->size = t->size;
		snprintf(unnamed, sizeof(unnamed), "%s_%s", e->name, f->name);
		return add_enum(b, id, t, unnamed, &f->values);
	} else if (t && btf_is_array(t) && is_char(b, btf_array(t)->type)) {
		f->size = btf_array(t)->nelems;
		f->type = f->size ? FIELD_TEXT : FIELD_TAIL;
	} else {
		return FAIL(b, -EINVAL, "event %s, field %s: only integers, floats, enums, structs and char arrays",
			    e->name, f->name);
	}
	return 0;
}

static int add_field(struct builder *b, struct schema_event *e, u32 owner, u32 member, const char *name, u32 offset)
{
	const struct btf_member *m = &btf_members(btf__type_by_id(b->btf, owner))[member];
	struct schema_field *f;
	int err;

	if (!MORE(e->fields, e->n))
		return no_memory(b);
	f = &e->fields[e->n++];
	f->name = strdup(name);
	f->doc = copy_tag(b, owner, member, "doc:");
	f->unit = copy_tag(b, owner, member, "unit:");
	f->offset = offset;
	if (!f->name || !f->doc || !f->unit)
		return no_memory(b);
	err = field_type(b, e, f, m->type);
	/* the tail may begin in the padding at the end of the struct */
	if (!err && f->type == FIELD_TAIL)
		e->size = offset;
	return err;
}

/* Structs nest by value, so the recursion ends; the limit guards against forged BTF. */
static int add_fields(struct builder *b, struct schema_event *e, u32 owner, u32 base, int depth)
{
	const struct btf_type *t = btf__type_by_id(b->btf, owner);
	u32 i;
	int err = 0;

	for (i = 0; i < btf_vlen(t) && !err; i++) {
		const struct btf_member *m = &btf_members(t)[i];
		const char *name = btf__name_by_offset(b->btf, m->name_off);
		u32 bits = btf_member_bit_offset(t, i), id = m->type;
		const struct btf_type *inner = resolve(b, &id);

		if (btf_member_bitfield_size(t, i) || bits % 8)
			err = FAIL(b, -EINVAL, "event %s: %s is a bit field", e->name, name);
		else if (inner && btf_is_struct(inner) && depth < NESTING_MAX)
			err = add_fields(b, e, id, base + bits / 8, depth + 1);
		else
			err = add_field(b, e, owner, i, name, base + bits / 8);
	}
	return err;
}

static bool same_event(const struct schema_event *a, const struct schema_event *b)
{
	u32 i;

	if (a->n != b->n || a->size != b->size || !same_text(a->name, b->name) || !same_text(a->doc, b->doc))
		return false;
	for (i = 0; i < a->n; i++) {
		const struct schema_field *x = &a->fields[i], *y = &b->fields[i];

		if (x->type != y->type || x->size != y->size || x->offset != y->offset ||
		    !same_text(x->name, y->name) || !same_text(x->doc, y->doc) || !same_text(x->unit, y->unit) ||
		    !same_enum(x->values, y->values))
			return false;
	}
	return true;
}

static int parse_id(struct builder *b, const char *what, const char *name, const char *text, u32 max, u32 *id)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(text, &end, 0);
	if (errno || end == text || *end || v > max)
		return FAIL(b, -EINVAL, "%s %s: '%s' is no id up to 0x%x", what, name, text, max);
	*id = v;
	return 0;
}

static int add_event(struct builder *b, u32 type, const char *tag)
{
	const struct btf_type *t = btf__type_by_id(b->btf, type);
	struct schema_event e = {};
	struct schema *s = b->s;
	u32 id = 0, i;
	int err;

	if (!t || !btf_is_struct(t))
		return FAIL(b, -EINVAL, "the tag event:%s is on no struct", tag);
	err = parse_id(b, "event", name_of(b, t), tag, 0xffff, &id);
	if (err)
		return err;
	e.id = id;
	e.size = t->size;
	e.name = strdup(name_of(b, t));
	e.doc = copy_tag(b, type, -1, "doc:");
	err = e.name && e.doc ? add_fields(b, &e, type, 0, 0) : no_memory(b);
	for (i = 0; i < s->n_events && !err; i++) {
		if (s->events[i].id != e.id || !same_event(&s->events[i], &e))
			continue;
		schema_event__clear(&e); /* it is declared in several object files */
		return 0;
	}
	if (!err && !MORE(s->events, s->n_events))
		err = no_memory(b);
	if (err)
		schema_event__clear(&e);
	else
		s->events[s->n_events++] = e;
	return err;
}

static int add_family(struct builder *b, u32 type, const char *tag)
{
	const struct btf_type *t = btf__type_by_id(b->btf, type);
	const char *name = t ? name_of(b, t) : "", *when = find_tag(b, type, -1, "family-default:");
	const char *doc = find_tag(b, type, -1, "doc:");
	struct schema *s = b->s;
	struct schema_family *f;
	u32 id = 0, i;
	int err;

	if (!t || !btf_is_struct(t) || strncmp(name, "family_", 7) || !name[7])
		return FAIL(b, -EINVAL, "the tag family:%s is on no struct family_NAME", tag);
	name += 7;
	err = parse_id(b, "family", name, tag, FAMILY_MAX - 1, &id);
	if (err)
		return err;
	for (i = 0; i < s->n_families; i++)
		if (s->families[i].id == id && same_text(s->families[i].name, name) &&
		    same_text(s->families[i].doc, doc ? doc : ""))
			return 0;
	if (!MORE(s->families, s->n_families))
		return no_memory(b);
	f = &s->families[s->n_families++];
	f->id = id;
	f->lean = when && !strcmp(when, "1");
	f->by_default = f->lean || (when && !strcmp(when, "2"));
	f->name = strdup(name);
	f->doc = strdup(doc ? doc : "");
	return f->name && f->doc ? 0 : no_memory(b);
}

static int add_option(struct builder *b, u32 type, const char *tag)
{
	const char *equal = strchr(tag, '=');
	struct schema *s = b->s;
	struct schema_option *o;
	u32 i;

	if (!equal || equal == tag || !equal[1])
		return FAIL(b, -EINVAL, "the tag option:%s is not FAMILY=OPTION", tag);
	for (i = 0; i < s->n_options; i++)
		if (!strncmp(tag, s->options[i].family, equal - tag) && !s->options[i].family[equal - tag] &&
		    same_text(s->options[i].name, equal + 1))
			return 0;
	if (!MORE(s->options, s->n_options))
		return no_memory(b);
	o = &s->options[s->n_options++];
	o->family = strndup(tag, equal - tag);
	o->name = strdup(equal + 1);
	o->doc = copy_tag(b, type, -1, "doc:");
	o->number = copy_tag(b, type, -1, "number:");
	return o->family && o->name && o->doc && o->number ? 0 : no_memory(b);
}

static int collect_tags(struct builder *b)
{
	u32 i, n = btf__type_cnt(b->btf);

	b->tags = calloc(n ? n : 1, sizeof(*b->tags));
	b->first = calloc(n ? n : 1, sizeof(*b->first));
	b->next = calloc(n ? n : 1, sizeof(*b->next));
	if (!b->tags || !b->first || !b->next)
		return no_memory(b);
	for (i = 1; i < n; i++) {
		const struct btf_type *t = btf__type_by_id(b->btf, i);

		if (btf_is_decl_tag(t) && t->type < n)
			b->tags[b->n_tags++] = t;
	}
	/* backwards, so that a type's tags are in their order */
	for (i = b->n_tags; i; i--) {
		b->next[i - 1] = b->first[b->tags[i - 1]->type];
		b->first[b->tags[i - 1]->type] = i;
	}
	return 0;
}

static int add_all(struct builder *b)
{
	int err = 0;
	u32 i;

	for (i = 0; i < b->n_tags && !err; i++) {
		const struct btf_type *t = b->tags[i];
		const char *text = name_of(b, t);

		if (btf_decl_tag(t)->component_idx != -1)
			continue;
		if (!strncmp(text, "event:", 6))
			err = add_event(b, t->type, text + 6);
		else if (!strncmp(text, "family:", 7))
			err = add_family(b, t->type, text + 7);
		else if (!strncmp(text, "option:", 7))
			err = add_option(b, t->type, text + 7);
	}
	return err;
}

static int check_declared(struct builder *b)
{
	const struct schema *s = b->s;
	u32 i;

	for (i = 0; i < s->n_events; i++)
		if (!schema__family_by_id(s, EVENT_FAMILY(s->events[i].id)))
			return FAIL(b, -EINVAL, "event %s has id 0x%04x, but no FAMILY has id 0x%02x",
				    s->events[i].name, s->events[i].id, EVENT_FAMILY(s->events[i].id));
	for (i = 0; i < s->n_options; i++)
		if (!schema__family(s, s->options[i].family))
			return FAIL(b, -EINVAL, "option %s=%s: there is no such family", s->options[i].family,
				    s->options[i].name);
	return 0;
}

int schema__from_btf(struct schema **out, const struct btf *btf, char *err, size_t err_len)
{
	struct builder b = { .btf = btf, .err = err, .err_len = err_len };
	int res;

	*out = NULL;
	b.s = calloc(1, sizeof(*b.s));
	if (b.s)
		b.s->enums = calloc(ENUMS_MAX, sizeof(*b.s->enums));
	res = b.s && b.s->enums ? collect_tags(&b) : no_memory(&b);
	if (!res)
		res = add_all(&b);
	if (!res)
		res = schema__finish(b.s, err, err_len);
	if (!res)
		res = check_declared(&b);
	free(b.tags);
	free(b.first);
	free(b.next);
	if (res)
		schema__free(b.s);
	else
		*out = b.s;
	return res;
}
