// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The writer's guarantees other than round trips: interning, times, refusals, waiting. */
#include "test.h"
#include "trace_support.h"

struct made {
	char path[64];
	int fd;
	struct schema *schema;
	struct trace_writer *w;
};

static bool begin(struct made *m)
{
	m->fd = support_memfd(m->path, sizeof(m->path));
	m->schema = support_schema();
	return m->schema && !trace_writer__create(&m->w, m->fd, m->schema, &support_head);
}

static struct trace *end(struct made *m)
{
	char err[256] = "";
	struct trace *t = NULL;

	CHECK(!trace_writer__finish(m->w));
	if (!CHECK(!trace__open(&t, m->path, err, sizeof(err))))
		printf("# %s\n", err);
	trace_writer__free(m->w);
	schema__free(m->schema);
	close(m->fd);
	return t;
}

TEST(interning)
{
	struct made m;
	struct trace *t;
	char name[32], *big = malloc(100000);
	u32 i, n = 5000;

	REQUIRE(big && begin(&m));
	memset(big, 'x', 100000);
	CHECK(trace_writer__intern(m.w, NULL, 5) == 0);
	CHECK(trace_writer__intern(m.w, "", 0) == 0);
	for (i = 0; i < n; i++) {
		sprintf(name, "function_%u", i);
		CHECK(trace_writer__intern(m.w, name, strlen(name)) == i + 1);
	}
	for (i = 0; i < n; i += 7) {
		sprintf(name, "function_%u", i);
		CHECK(trace_writer__intern(m.w, name, strlen(name)) == i + 1);
	}
	CHECK(trace_writer__intern(m.w, "function_1xyz", 10) == 2);
	CHECK(trace_writer__intern(m.w, big, 100000) == n + 1);
	t = end(&m);
	REQUIRE(t);
	CHECK(trace__summary(t)->events == n + 1);
	CHECK_TEXT(trace__string(t, 0), "");
	CHECK_TEXT(trace__string(t, 1), "function_0");
	CHECK_TEXT(trace__string(t, n), "function_4999");
	CHECK_TEXT(trace__string(t, n + 2), "");
	CHECK(strlen(trace__string(t, n + 1)) == 65535);
	trace__close(t);
	free(big);
}

static int read_loss(const struct rows *r, void *arg)
{
	const struct schema_event *e = rows__event(r);
	u64 *got = arg;
	u32 i;

	for (i = 0; i < rows__count(r); i++) {
		got[0] += rows__u64(r, schema_event__field(e, "count"), i);
		got[1] = rows__u64(r, schema_event__field(e, "family"), i);
		got[2] = rows__u64(r, schema_event__field(e, "reason"), i);
	}
	return 0;
}

TEST(refused_records_are_losses)
{
	struct made m;
	struct trace *t;
	struct every v = support_every_at(1);
	struct event unknown = { .time = 5, .id = 0x3fee };
	const struct schema_event *kinds[] = { NULL, NULL };
	struct trace_filter f = { .kinds = kinds };
	u64 got[3] = {};

	REQUIRE(begin(&m));
	CHECK(trace_writer__append(m.w, &v, sizeof(v) - 1) == -EINVAL);
	CHECK(trace_writer__append(m.w, &v, sizeof(v) + 8) == -EINVAL);
	CHECK(trace_writer__append(m.w, &v, 10) == -EINVAL);
	CHECK(trace_writer__append(m.w, &unknown, sizeof(unknown)) == -EINVAL);
	CHECK(trace_writer__append(m.w, &v, sizeof(v)) == 0);
	CHECK(trace_writer__events(m.w) == 1);
	t = end(&m);
	REQUIRE(t);
	kinds[0] = schema__event(trace__schema(t), "meta_loss");
	CHECK(!trace__read(t, &f, read_loss, got));
	CHECK(got[0] == 4 && got[1] == 0x3f && got[2] == LOSS_REFUSED);
	trace__close(t);
}

TEST(events_are_written_within_a_second)
{
	struct made m;
	struct event e = { .time = 7, .id = ID_point };
	u64 now = 1000000000000ULL, written;
	u32 i;

	REQUIRE(begin(&m));
	written = trace_writer__bytes(m.w);
	CHECK(!trace_writer__tick(m.w, now));
	CHECK(trace_writer__bytes(m.w) == written); /* no empty chunks */
	CHECK(!trace_writer__append(m.w, &e, sizeof(e)));
	for (i = 1; i <= 4; i++)
		CHECK(!trace_writer__tick(m.w, now + i * 100000000ULL));
	CHECK(trace_writer__bytes(m.w) == written);
	CHECK(!trace_writer__tick(m.w, now + 500000000ULL));
	CHECK(trace_writer__bytes(m.w) > written);
	trace__close(end(&m));
}

struct seen_text {
	char text[3][16];
	u32 n;
};

static int read_text(const struct rows *r, void *arg)
{
	struct seen_text *s = arg;
	u32 i, len;

	for (i = 0; i < rows__count(r) && s->n < 3; i++) {
		const char *text = rows__text(r, schema_event__field(rows__event(r), "text"), i, &len);

		snprintf(s->text[s->n++], sizeof(s->text[0]), "%.*s", (int)len, text);
	}
	return 0;
}

TEST(tails_end_at_their_first_nul)
{
	struct made m;
	struct trace *t;
	struct seen_text seen = {};
	u8 record[64] = {};
	u32 at = offsetof(struct note, text);

	REQUIRE(begin(&m));
	((struct event *)record)->id = ID_note;
	memcpy(record + at, "hello\0\0\0", 8);
	CHECK(!trace_writer__append(m.w, record, at + 8));
	CHECK(!trace_writer__append(m.w, record, at));
	CHECK(!trace_writer__append(m.w, record, at + 4));
	t = end(&m);
	REQUIRE(t);
	CHECK(!trace__read(t, NULL, read_text, &seen));
	CHECK_TEXT(seen.text[0], "hello");
	CHECK_TEXT(seen.text[1], "");
	CHECK_TEXT(seen.text[2], "hell");
	trace__close(t);
}

TEST(time_range_of_unordered_spans)
{
	struct made m;
	struct trace *t;
	struct rare r = { .span = { { .id = ID_rare }, .start = 0 } };
	u64 times[] = { 9000, 2000, 5000 }, starts[] = { 8000, 1500, 100 };
	u32 i;

	REQUIRE(begin(&m));
	for (i = 0; i < 3; i++) {
		r.span.event.time = times[i];
		r.span.start = starts[i];
		CHECK(!trace_writer__append(m.w, &r, offsetof(struct rare, text)));
	}
	t = end(&m);
	REQUIRE(t);
	CHECK(trace__summary(t)->first == 100 && trace__summary(t)->last == 9000);
	trace__close(t);
}

static s64 number_after(const char *line, const char *name)
{
	const char *at = strstr(line, name);

	return at ? strtoll(at + strlen(name), NULL, 10) : 0;
}

/* Many kinds of values in one column, each of which the encoder handles differently. */
TEST(columns_change_their_transform)
{
	struct made m;
	struct trace *t;
	struct every v;
	u32 i, round;
	char *text, *line, *rest;

	REQUIRE(begin(&m));
	for (round = 0; round < 40; round++) {
		for (i = 0; i < 700; i++) {
			v = support_every_at(i);
			v.handle = round % 3 == 0 ? 5 : round % 3 == 1 ? i % 256 * 0x10001 : i * 0x10001ULL;
			v.call.ret = i < 300 ? -1 : (s64)i;
			v.balance = i < 650 ? 1 : -1;
			CHECK(!trace_writer__append(m.w, &v, sizeof(v)));
		}
		CHECK(!trace_writer__flush(m.w));
	}
	t = end(&m);
	REQUIRE(t);
	text = support_dump(t, NULL);
	/* one line at a time, as the sanitizers' strstr measures the whole rest each time */
	line = strtok_r(text, "\n", &rest);
	for (round = 0; round < 40 && line; round++)
		for (i = 0; i < 700 && line; i++) {
			u64 handle = number_after(line, " handle=");
			s64 ret = number_after(line, " ret="), balance = number_after(line, " balance=");

			if (!CHECK(ret == (i < 300 ? -1 : (s64)i) && balance == (i < 650 ? 1 : -1) &&
				   (s64)handle == (s64)(round % 3 == 0 ? 5 :
							round % 3 == 1 ? i % 256 * 0x10001 :
									 i * 0x10001ULL)))
				i = round = 1000;
			line = strtok_r(NULL, "\n", &rest);
		}
	free(text);
	trace__close(t);
}

/* A kind that was busy releases its buffers after some chunks without events. */
TEST(buffers_of_a_quiet_kind_are_released)
{
	struct made m;
	struct trace *t;
	u64 busy, quiet;
	u32 i;

	REQUIRE(begin(&m));
	for (i = 0; i < 30000; i++)
		CHECK(!support_append(m.w, i));
	CHECK(!trace_writer__flush(m.w));
	busy = trace_writer__buffers(m.w);
	for (i = 0; i < 80; i++)
		CHECK(!support_append(m.w, i) && !trace_writer__flush(m.w));
	quiet = trace_writer__buffers(m.w);
	if (!CHECK(busy > 400 << 10 && quiet < busy / 4))
		printf("# %llu bytes after a busy chunk, %llu after quiet ones\n", busy, quiet);
	t = end(&m);
	REQUIRE(t);
	trace__close(t);
}

/* Also if some chunks in between use a little more. */
TEST(buffers_shrink_to_what_chunks_use)
{
	struct made m;
	struct trace *t;
	u64 busy, quiet;
	u32 i, j;

	REQUIRE(begin(&m));
	for (i = 0; i < 30000; i++)
		CHECK(!support_append(m.w, i));
	CHECK(!trace_writer__flush(m.w));
	busy = trace_writer__buffers(m.w);
	for (i = 0; i < 80; i++) {
		for (j = 0; j < (i % 8 ? 1 : 5000); j++)
			CHECK(!support_append(m.w, j));
		CHECK(!trace_writer__flush(m.w));
	}
	quiet = trace_writer__buffers(m.w);
	if (!CHECK(quiet < busy / 2))
		printf("# %llu bytes after a busy chunk, %llu after less busy ones\n", busy, quiet);
	t = end(&m);
	REQUIRE(t);
	trace__close(t);
}

TEST(rewound)
{
	struct made m;
	struct trace *t = NULL;
	char err[256];
	u32 id;

	REQUIRE(begin(&m));
	for (u32 i = 0; i < 100; i++)
		CHECK(!support_append(m.w, i));
	id = trace_writer__intern(m.w, "old", 3);
	CHECK(!trace_writer__finish(m.w));
	REQUIRE(!trace__open(&t, m.path, err, sizeof(err)));
	CHECK(trace__summary(t)->events == 101);
	CHECK_TEXT(trace__string(t, id), "old");
	CHECK(!trace_writer__rewind(m.w));
	for (u32 i = 0; i < 3; i++)
		CHECK(!support_append(m.w, i));
	CHECK(trace_writer__intern(m.w, "old", 3) == id + 1);
	CHECK(!trace_writer__finish(m.w) && !trace__reopen(t, err, sizeof(err)));
	CHECK(trace__summary(t)->events == 4 && trace__summary(t)->chunks == 1 && trace__summary(t)->has_index);
	CHECK_TEXT(trace__string(t, id), "");
	CHECK_TEXT(trace__string(t, id + 1), "old");
	trace__close(t);
	t = end(&m);
	CHECK(t && trace__summary(t)->events == 4);
	trace__close(t);
}

TEST(pipe_as_output)
{
	struct schema *s = support_schema();
	struct trace_writer *w;
	int fds[2], err = 0;
	u32 i;

	REQUIRE(s && !pipe(fds));
	CHECK(!trace_writer__create(&w, fds[1], s, &support_head));
	for (i = 0; i < 100 && !err; i++)
		err = support_append(w, i);
	CHECK(!err && !trace_writer__finish(w));
	trace_writer__free(w);
	schema__free(s);
	close(fds[0]);
	close(fds[1]);
}

TEST_MAIN()
