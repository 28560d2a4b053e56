// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Schemas from BTF and JSON. */
#include <bpf/btf.h>

#include "test.h"
#include "trace_support.h"

/* Handmade BTF with the types that bpf/core/event.h generates. */
struct made {
	struct btf *btf;
	int u8_, u16_, u32_, u64_, s64_, ch, event, span, call;
	char err[256];
	struct schema *s;
};

static void begin(struct made *m)
{
	struct btf *b = btf__new_empty();
	int raw;

	memset(m, 0, sizeof(*m));
	m->btf = b;
	m->u8_ = btf__add_int(b, "unsigned char", 1, 0);
	m->u16_ = btf__add_int(b, "unsigned short", 2, 0);
	m->u32_ = btf__add_int(b, "unsigned int", 4, 0);
	raw = btf__add_int(b, "unsigned long long", 8, 0);
	m->u64_ = btf__add_typedef(b, "u64", btf__add_typedef(b, "__u64", raw));
	m->s64_ = btf__add_int(b, "long long", 8, BTF_INT_SIGNED);
	m->ch = btf__add_int(b, "char", 1, BTF_INT_SIGNED);
	m->event = btf__add_struct(b, "event", 24);
	btf__add_field(b, "time", m->u64_, 0, 0);
	btf__add_field(b, "pid", m->u32_, 64, 0);
	btf__add_field(b, "tid", m->u32_, 96, 0);
	btf__add_field(b, "id", m->u16_, 128, 0);
	btf__add_field(b, "probe", m->u16_, 144, 0);
	btf__add_field(b, "cpu", m->u16_, 160, 0);
	btf__add_field(b, "flags", m->u16_, 176, 0);
	btf__add_decl_tag(b, "unit:ns", m->event, 0);
	btf__add_decl_tag(b, "doc:when", m->event, 0);
	m->span = btf__add_struct(b, "span", 32);
	btf__add_field(b, "event", m->event, 0, 0);
	btf__add_field(b, "start", m->u64_, 192, 0);
	m->call = btf__add_struct(b, "call", 40);
	btf__add_field(b, "span", m->span, 0, 0);
	btf__add_field(b, "ret", m->s64_, 256, 0);
	raw = btf__add_struct(b, "family_test", 1);
	btf__add_field(b, "unused", m->ch, 0, 0);
	btf__add_decl_tag(b, "family:0x3f", raw, -1);
	btf__add_decl_tag(b, "family-default:1", raw, -1);
	btf__add_decl_tag(b, "doc:a test", raw, -1);
}

/* An event beginning with a member of type `beginning` (struct event, span or call) of `at` bytes. */
static int event(struct made *m, const char *name, const char *tag, int beginning, u32 at, u32 size)
{
	int id = btf__add_struct(m->btf, name, size);

	btf__add_field(m->btf, at == 24 ? "event" : at == 32 ? "span" : "call", beginning, 0, 0);
	/* fields must follow immediately, so that finish() adds the tag */
	return tag ? id : 0;
}

static int finish(struct made *m, int id, const char *tag)
{
	int res;

	if (id)
		btf__add_decl_tag(m->btf, tag, id, -1);
	res = schema__from_btf(&m->s, m->btf, m->err, sizeof(m->err));
	btf__free(m->btf);
	return res;
}

TEST(from_btf)
{
	struct made m;
	const struct schema_event *e;
	const struct schema_field *f;
	int text, colour, id, var;

	begin(&m);
	text = btf__add_array(m.btf, m.u32_, m.ch, 16);
	colour = btf__add_enum(m.btf, "colour", 4);
	btf__add_enum_value(m.btf, "RED", 0);
	btf__add_enum_value(m.btf, "GREEN", 3);
	id = event(&m, "thing", "event:0x3f01", m.call, 40, 72);
	btf__add_field(m.btf, "size", m.u64_, 320, 0);
	btf__add_field(m.btf, "colour", colour, 384, 0);
	btf__add_field(m.btf, "comm", text, 416, 0);
	btf__add_decl_tag(m.btf, "unit:bytes", id, 1);
	btf__add_decl_tag(m.btf, "doc:how much", id, 1);
	btf__add_decl_tag(m.btf, "doc:a thing", id, -1);
	var = btf__add_var(m.btf, "option_test_all", BTF_VAR_GLOBAL_ALLOCATED, m.u8_);
	btf__add_decl_tag(m.btf, "option:test=all", var, -1);
	btf__add_decl_tag(m.btf, "doc:more", var, -1);
	if (!CHECK(!finish(&m, id, "event:0x3f01")))
		printf("# %s\n", m.err);
	REQUIRE(m.s);
	CHECK(m.s->n_events == 1 && m.s->n_families == 1 && m.s->n_options == 1 && m.s->n_enums == 1);
	e = schema__event(m.s, "thing");
	REQUIRE(e && e == schema__event_by_id(m.s, 0x3f01) && !schema__event_by_id(m.s, 0x3f02));
	CHECK_TEXT(e->doc, "a thing");
	CHECK(e->size == 72 && e->is_span && e->is_call && e->n == 12);
	f = schema_event__field(e, "size");
	REQUIRE(f && f->index == 9 && f->offset == 40 && f->size == 8 && f->type == FIELD_UNSIGNED);
	CHECK_TEXT(f->unit, "bytes");
	CHECK_TEXT(f->doc, "how much");
	f = schema_event__field(e, "time");
	REQUIRE(f);
	CHECK_TEXT(f->unit, "ns");
	CHECK_TEXT(f->doc, "when");
	f = schema_event__field(e, "colour");
	REQUIRE(f && f->type == FIELD_ENUM && f->values);
	CHECK_TEXT(schema_field__value_name(f, 3), "GREEN");
	CHECK(!schema_field__value_name(f, 4));
	f = schema_event__field(e, "comm");
	CHECK(f && f->type == FIELD_TEXT && f->size == 16);
	CHECK(!schema_event__field(e, "nothing") && !schema_event__field(NULL, "time"));
	CHECK(schema__family(m.s, "test") && schema__family(m.s, "test")->by_default);
	CHECK(schema__family_by_id(m.s, 0x3f) == schema__family(m.s, "test"));
	CHECK_TEXT(m.s->options[0].family, "test");
	CHECK_TEXT(m.s->options[0].name, "all");
	CHECK_TEXT(m.s->options[0].doc, "more");
	schema__free(m.s);
}

TEST(tail_begins_in_the_padding)
{
	struct made m;
	int tail, id;

	begin(&m);
	tail = btf__add_array(m.btf, m.u32_, m.ch, 0);
	id = event(&m, "text", "", m.event, 24, 32);
	btf__add_field(m.btf, "level", m.u32_, 192, 0);
	btf__add_field(m.btf, "text", tail, 224, 0);
	REQUIRE(!finish(&m, id, "event:0x3f02"));
	CHECK(m.s->events[0].size == 28);
	CHECK(m.s->events[0].fields[8].type == FIELD_TAIL && m.s->events[0].fields[8].size == 0);
	CHECK(!m.s->events[0].is_span);
	schema__free(m.s);
}

static int simple(struct made *m, const char *name, const char *field, int type, u32 size)
{
	int id = event(m, name, "", m->event, 24, size);

	btf__add_field(m->btf, field, type, 192, 0);
	return id;
}

TEST(copies_of_one_struct_are_one)
{
	struct made m;
	int a, b;

	begin(&m);
	a = simple(&m, "x", "v", m.u64_, 32);
	b = simple(&m, "x", "v", m.u64_, 32);
	btf__add_decl_tag(m.btf, "event:0x3f01", a, -1);
	REQUIRE(!finish(&m, b, "event:0x3f01"));
	CHECK(m.s->n_events == 1);
	schema__free(m.s);
}

#define FAILS(m, id, tag, want)                                         \
	do {                                                            \
		CHECK(finish(m, id, tag) < 0 && !(m)->s);               \
		if (!CHECK(strstr((m)->err, want)))                     \
			printf("# '%s' has no '%s'\n", (m)->err, want); \
	} while (0)

TEST(mistakes_in_btf)
{
	struct made m;
	int a, array, pointer;

	begin(&m);
	a = simple(&m, "x", "v", m.u64_, 32);
	btf__add_decl_tag(m.btf, "event:0x3f01", a, -1);
	FAILS(&m, simple(&m, "y", "v", m.u64_, 32), "event:0x3f01", "both have id 0x3f01");
	begin(&m);
	a = simple(&m, "x", "v", m.u64_, 32);
	btf__add_decl_tag(m.btf, "event:0x3f01", a, -1);
	FAILS(&m, simple(&m, "x", "w", m.u64_, 32), "event:0x3f01", "both have id 0x3f01");
	begin(&m);
	FAILS(&m, simple(&m, "x", "pid", m.u64_, 32), "event:0x3f01", "two fields pid");
	begin(&m);
	pointer = btf__add_ptr(m.btf, m.u64_);
	FAILS(&m, simple(&m, "x", "p", pointer, 32), "event:0x3f01", "event x, field p");
	begin(&m);
	array = btf__add_array(m.btf, m.u32_, m.u8_, 8);
	FAILS(&m, simple(&m, "x", "a", array, 32), "event:0x3f01", "event x, field a");
	begin(&m);
	FAILS(&m, simple(&m, "x", "v", m.u64_, 32), "event:blue", "'blue' is no id");
	begin(&m);
	FAILS(&m, simple(&m, "x", "v", m.u64_, 32), "event:0x0301", "no FAMILY has id 0x03");
	begin(&m);
	FAILS(&m, m.u64_, "event:0x3f01", "on no struct");
	begin(&m);
	a = btf__add_struct(m.btf, "family_great", 1);
	FAILS(&m, a, "family:0x40", "family great: '0x40' is no id up to 0x3f");
	begin(&m);
	a = btf__add_struct(m.btf, "short", 8);
	btf__add_field(m.btf, "v", m.u64_, 0, 0);
	FAILS(&m, a, "event:0x3f01", "does not begin with struct event");
	begin(&m);
	array = btf__add_array(m.btf, m.u32_, m.ch, 0);
	a = simple(&m, "x", "t", array, 32);
	btf__add_field(m.btf, "v", m.u64_, 192, 0);
	FAILS(&m, a, "event:0x3f01", "no last field");
}

TEST(through_json_and_back)
{
	struct schema *s = support_schema(), *back = NULL;
	struct cJSON *json = s ? schema__to_json(s) : NULL, *again = NULL;
	char err[256] = "", *a, *b;
	const struct schema_field *f;

	REQUIRE(json);
	CHECK(!schema__from_json(&back, json, err, sizeof(err)));
	REQUIRE(back);
	again = schema__to_json(back);
	a = cJSON_PrintUnformatted(json);
	b = cJSON_PrintUnformatted(again);
	CHECK_TEXT(b, a);
	f = schema_event__field(schema__event(back, "every"), "colour");
	CHECK_TEXT(schema_field__value_name(f, -9223372036854775807LL), "FAR");
	free(a);
	free(b);
	cJSON_Delete(json);
	cJSON_Delete(again);
	schema__free(s);
	schema__free(back);
}

static int parse(const char *find, const char *replace)
{
	struct cJSON *json = support_json(), *changed;
	char *text = cJSON_PrintUnformatted(json), *at = strstr(text, find), *edited, err[256];
	struct schema *s = NULL;
	int res;

	if (!CHECK(at) || asprintf(&edited, "%.*s%s%s", (int)(at - text), text, replace, at + strlen(find)) < 0)
		return 1;
	changed = cJSON_Parse(edited);
	res = schema__from_json(&s, changed, err, sizeof(err));
	schema__free(s);
	cJSON_Delete(json);
	cJSON_Delete(changed);
	free(text);
	free(edited);
	return res;
}

TEST(hostile_json)
{
	struct schema *s;
	char err[256];

	CHECK(schema__from_json(&s, NULL, err, sizeof(err)) == 0 && s->n_events == 0);
	schema__free(s);
	CHECK(parse("\"type\":\"float\",\"size\":8", "\"type\":\"float\",\"size\":2") < 0);
	CHECK(parse("\"offset\":24", "\"offset\":4000") < 0);
	CHECK(parse("\"offset\":24", "\"offset\":-1") < 0);
	CHECK(parse("\"offset\":24", "\"offset\":1e300") < 0);
	CHECK(parse("\"enum\":\"colour\"", "\"enum\":\"none\"") < 0);
	CHECK(parse("\"name\":\"time\"", "\"name\":\"tyme\"") < 0);
	CHECK(parse("\"name\":\"port\"", "\"name\":\"step\"") < 0);
	CHECK(parse("\"id\":32514", "\"id\":32513") < 0);
	CHECK(parse("\"name\":\"point\"", "\"name\":\"note\"") < 0);
	CHECK(parse("\"name\":\"point\"", "\"name\":7") < 0);
	CHECK(parse("\"doc\":\"for tests\"", "\"colour\":[1,2]") == 0);
}

TEST(types_of_later_versions)
{
	struct cJSON *json = cJSON_Parse("{\"events\":[]}"), *f;
	struct schema *s = NULL;
	const struct schema_event *e;
	char err[256];

	f = support_event(cJSON_GetObjectItem(json, "events"), "new", 0x3f10, 64, 0);
	support_field(f, "a", "address", 8, 24, "colour", "red");
	support_field(f, "b", "shape", 12, 32, NULL, NULL);
	REQUIRE(!schema__from_json(&s, json, err, sizeof(err)));
	e = schema__event(s, "new");
	CHECK(schema_event__field(e, "a")->type == FIELD_UNSIGNED);
	CHECK(schema_event__field(e, "b")->type == FIELD_TEXT);
	schema__free(s);
	cJSON_Delete(json);
}

TEST_MAIN()
