// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Raw records as lines and names without a trace, as in `record --print`. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>

#include "core/meta.h"
#include "model/line.h"
#include "test.h"

#define BASE                                                                                 \
	"{\"name\":\"time\",\"type\":\"unsigned\",\"size\":8,\"offset\":0,\"unit\":\"ns\"}," \
	"{\"name\":\"pid\",\"type\":\"unsigned\",\"size\":4,\"offset\":8},"                  \
	"{\"name\":\"tid\",\"type\":\"unsigned\",\"size\":4,\"offset\":12},"                 \
	"{\"name\":\"id\",\"type\":\"unsigned\",\"size\":2,\"offset\":16},"                  \
	"{\"name\":\"probe\",\"type\":\"unsigned\",\"size\":2,\"offset\":18},"               \
	"{\"name\":\"cpu\",\"type\":\"unsigned\",\"size\":2,\"offset\":20},"                 \
	"{\"name\":\"flags\",\"type\":\"unsigned\",\"size\":2,\"offset\":22}"

static const char schema_json[] =
	"{\"families\":[{\"id\":0,\"name\":\"core\",\"doc\":\"\",\"default\":true},"
	"{\"id\":1,\"name\":\"proc\",\"doc\":\"\",\"default\":true},"
	"{\"id\":3,\"name\":\"cuda\",\"doc\":\"\",\"default\":true}],"
	"\"options\":[],\"enums\":[{\"name\":\"kind\",\"values\":[{\"name\":\"KIND_ONE\",\"value\":1}]}],"
	"\"events\":["
	"{\"id\":1,\"name\":\"meta_string\",\"doc\":\"\",\"size\":28,\"fields\":[" BASE ","
	"{\"name\":\"string\",\"type\":\"unsigned\",\"size\":4,\"offset\":24},"
	"{\"name\":\"text\",\"type\":\"tail\",\"size\":0,\"offset\":28}]},"
	"{\"id\":5,\"name\":\"meta_probe\",\"doc\":\"\",\"size\":40,\"fields\":[" BASE ","
	"{\"name\":\"name\",\"type\":\"unsigned\",\"size\":4,\"offset\":24,\"unit\":\"string\"},"
	"{\"name\":\"number\",\"type\":\"unsigned\",\"size\":2,\"offset\":36}]},"
	"{\"id\":257,\"name\":\"proc_task\",\"doc\":\"\",\"size\":40,\"fields\":[" BASE ","
	"{\"name\":\"comm\",\"type\":\"text\",\"size\":16,\"offset\":24}]},"
	"{\"id\":769,\"name\":\"cuda_copy\",\"doc\":\"\",\"size\":72,\"fields\":[" BASE ","
	"{\"name\":\"start\",\"type\":\"unsigned\",\"size\":8,\"offset\":24,\"unit\":\"ns\"},"
	"{\"name\":\"ret\",\"type\":\"signed\",\"size\":8,\"offset\":32},"
	"{\"name\":\"bytes\",\"type\":\"unsigned\",\"size\":8,\"offset\":40,\"unit\":\"bytes\"},"
	"{\"name\":\"delta\",\"type\":\"signed\",\"size\":2,\"offset\":48},"
	"{\"name\":\"kind\",\"type\":\"enum\",\"size\":4,\"offset\":52,\"enum\":\"kind\"},"
	"{\"name\":\"when\",\"type\":\"unsigned\",\"size\":8,\"offset\":56,\"unit\":\"ns\"},"
	"{\"name\":\"ratio\",\"type\":\"float\",\"size\":4,\"offset\":64}]}]}";

struct copy {
	struct call call;
	u64 bytes;
	s16 delta;
	s32 kind;
	u64 when;
	float ratio;
};

static struct schema *schema;
static struct names *names;

static bool set_up(void)
{
	char why[256] = "";
	cJSON *json = cJSON_Parse(schema_json);
	bool ok = json && !schema__from_json(&schema, json, why, sizeof(why)) && !names__create(&names, schema);

	if (!ok)
		printf("# %s\n", why);
	cJSON_Delete(json);
	return ok;
}

static void tear_down(void)
{
	names__free(names);
	schema__free(schema);
	names = NULL;
	schema = NULL;
}

static bool feed(const void *record, u32 size)
{
	struct view v;

	return view__of_record(&v, schema, record, size) && !names__feed(names, &v);
}

static bool feed_string(u32 id, const char *text)
{
	char record[128] = "";
	struct event e = { .id = 1 };

	memcpy(record, &e, sizeof(e));
	memcpy(record + 24, &id, sizeof(id));
	memcpy(record + 28, text, strlen(text));
	return feed(record, (u32)(28 + strlen(text)));
}

static bool feed_probe(u16 number, u32 name)
{
	struct meta_probe p = { .event.id = 5, .name = name, .number = number };

	return feed(&p, 40);
}

static bool feed_task(u64 time, u32 pid, u32 tid, const char *comm)
{
	struct {
		struct event event;
		char comm[16];
	} task = { .event = { .time = time, .pid = pid, .tid = tid, .id = 257 } };

	memcpy(task.comm, comm, strnlen(comm, 16));
	return feed(&task, sizeof(task));
}

static const struct copy copy = {
	.call = { .span = { .event = { .time = 5000001500, .pid = 7, .tid = 8, .id = 769, .probe = 2, .cpu = 3 },
			    .start = 5000000000 },
		  .ret = -1 },
	.bytes = ~0ull,
	.delta = -2,
	.kind = 1,
	.when = 4500000000,
	.ratio = 0.5,
};

/* The line with runs of blanks reduced to one. */
static bool prints(const struct line_context *c, const void *record, u32 size, const char *expected)
{
	char *text = NULL, *from, *to;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	bool same;
	int err = line__print_record(f, c, record, size);

	fclose(f);
	for (from = to = text; *from; from++)
		if (*from != ' ' || (to > text && to[-1] != ' '))
			*to++ = *from;
	*to = '\0';
	same = !err && !strcmp(text, expected);
	if (!same)
		printf("# error %d, got %s", err, text);
	free(text);
	return same;
}

TEST(a_record_becomes_a_line)
{
	struct line_context c = { .start = 4000000000 };

	REQUIRE(set_up());
	c.schema = schema;
	c.names = names;
	CHECK(prints(&c, &copy, sizeof(copy),
		     "1.000001500 7/8 cuda cuda_copy 1.500 us cpu=3 ret=-1 bytes=18446744073709551615B delta=-2 "
		     "kind=KIND_ONE when=@0.500000000 ratio=0.5\n"));
	CHECK(feed_string(1, "cuda\x1b"
			     "Copy") &&
	      feed_probe(2, 1) && feed_task(1, 7, 7, "py\nthon"));
	CHECK(prints(&c, &copy, sizeof(copy),
		     "1.000001500 py\\nthon 7/8 cuda cuda\\x1bCopy 1.500 us cpu=3 ret=-1 bytes=18446744073709551615B "
		     "delta=-2 kind=KIND_ONE when=@0.500000000 ratio=0.5\n"));
	tear_down();
}

TEST(a_short_or_unknown_record_is_refused)
{
	struct line_context c = { 0 };
	struct copy other = copy;
	u32 size;

	REQUIRE(set_up());
	c.schema = schema;
	for (size = 0; size < 72; size++)
		CHECK(line__print_record(stdout, &c, &copy, size) == -EINVAL);
	other.call.span.event.id = 999;
	CHECK(line__print_record(stdout, &c, &other, sizeof(other)) == -EINVAL);
	tear_down();
}

TEST(names_depend_on_time_not_on_order)
{
	char label[64];

	REQUIRE(set_up());
	CHECK(!names__comm(names, 7, 8) && !strcmp(names__label(names, label, sizeof(label), 7, 8), "thread 8"));
	CHECK(!strcmp(names__label(names, label, sizeof(label), 7, 0), "process 7"));
	CHECK(feed_task(20, 7, 7, "new") && feed_task(10, 7, 7, "old"));
	CHECK(!strcmp(names__comm(names, 7, 7), "new"));
	/* a thread without a name of its own has its process's */
	CHECK(!strcmp(names__comm(names, 7, 8), "new"));
	CHECK(feed_task(30, 7, 8, "0123456789abcdefgh"));
	CHECK(!strcmp(names__label(names, label, sizeof(label), 7, 8), "0123456789abcdef 8"));
	tear_down();
}

static bool is_named(const char *unit, s64 value, const char *expected)
{
	struct schema_field f = { .unit = (char *)unit, .type = FIELD_SIGNED, .size = 8, .is_signed = true };
	const char *name = schema_field__constant(&f, value);

	return expected ? name && !strcmp(name, expected) : !name;
}

TEST(numbers_without_an_error_or_signal_have_no_name)
{
	CHECK(is_named("errno", -ENOENT, "ENOENT") && is_named("signal", SIGTERM, "TERM"));
	CHECK(is_named("errno", ENOENT, NULL) && is_named("signal", -SIGTERM, NULL) && is_named("", -ENOENT, NULL));
	/* values that would have a name if truncated, and the smallest value, which can't be negated */
	CHECK(is_named("errno", INT64_MIN, NULL) && is_named("errno", INT32_MIN, NULL) &&
	      is_named("errno", -(1ll << 32) - ENOENT, NULL));
	CHECK(is_named("signal", INT64_MAX, NULL) && is_named("signal", (1ll << 32) + SIGTERM, NULL));
}

TEST_MAIN()
