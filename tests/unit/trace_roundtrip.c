// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// test: smoke
/* Records that are written to a trace are read back unchanged. */
#include "test.h"
#include "trace_support.h"

struct comparison {
	u32 every, point, note; /* rows read so far: records of one kind are read in the order of writing */
	bool same;
};

#define SAME(c, ...)                                                               \
	do {                                                                       \
		if (!(__VA_ARGS__) && (c)->same) {                                 \
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #__VA_ARGS__); \
			(c)->same = false;                                         \
		}                                                                  \
	} while (0)

static const struct schema_field *field(const struct rows *r, const char *name)
{
	return schema_event__field(rows__event(r), name);
}

static bool text_is(const struct rows *r, const char *name, u32 i, const char *want, u32 want_len)
{
	u32 len;
	const char *got = rows__text(r, field(r, name), i, &len);

	return len == want_len && !memcmp(got, want, len);
}

static void compare_event(struct comparison *c, const struct rows *r, u32 i, const struct event *e)
{
	SAME(c, rows__u64(r, field(r, "time"), i) == e->time);
	SAME(c, rows__u64(r, field(r, "pid"), i) == e->pid);
	SAME(c, rows__u64(r, field(r, "tid"), i) == e->tid);
	SAME(c, rows__u64(r, field(r, "id"), i) == e->id);
	SAME(c, rows__u64(r, field(r, "probe"), i) == e->probe);
	SAME(c, rows__u64(r, field(r, "cpu"), i) == e->cpu);
	SAME(c, rows__u64(r, field(r, "flags"), i) == e->flags);
}

static void compare_every(struct comparison *c, const struct rows *r, u32 i, const struct every *v)
{
	double ratio = rows__double(r, field(r, "ratio"), i);

	compare_event(c, r, i, &v->call.span.event);
	SAME(c, rows__u64(r, field(r, "start"), i) == v->call.span.start);
	SAME(c, rows__s64(r, field(r, "ret"), i) == v->call.ret);
	SAME(c, rows__u64(r, field(r, "when"), i) == v->when);
	SAME(c, rows__u64(r, field(r, "handle"), i) == v->handle);
	SAME(c, !memcmp(&ratio, &v->ratio, sizeof(ratio)));
	SAME(c, rows__s64(r, field(r, "balance"), i) == v->balance);
	SAME(c, rows__double(r, field(r, "share"), i) == v->share);
	SAME(c, rows__s64(r, field(r, "share"), i) == (s64)v->share);
	SAME(c, rows__s64(r, field(r, "shift"), i) == v->shift);
	SAME(c, rows__double(r, field(r, "shift"), i) == v->shift);
	SAME(c, rows__u64(r, field(r, "name_id"), i) == v->name_id);
	SAME(c, rows__s64(r, field(r, "colour"), i) == v->colour);
	SAME(c, text_is(r, "comm", i, v->comm, strlen(v->comm)));
	SAME(c, rows__u64(r, field(r, "port"), i) == v->port);
	SAME(c, rows__s64(r, field(r, "step"), i) == v->step);
	SAME(c, rows__u64(r, field(r, "level"), i) == v->level);
	SAME(c, rows__s64(r, field(r, "sign"), i) == v->sign);
	SAME(c, text_is(r, "two", i, v->two, strnlen(v->two, 2)));
	SAME(c, rows__s64(r, field(r, "no_such"), i) == 0);
}

static int compare(const struct rows *r, void *arg)
{
	struct comparison *c = arg;
	char room[256];
	u32 i, size;

	for (i = 0; i < rows__count(r); i++) {
		switch (rows__event(r)->id) {
		case ID_every: {
			struct every v = support_every_at(c->every++ * 2);

			compare_every(c, r, i, &v);
			break;
		}
		case ID_point: {
			struct event e = support_event_at(c->point++ * 4 + 1, ID_point);

			compare_event(c, r, i, &e);
			break;
		}
		case ID_note:
			size = support_note_at(c->note++ * 4 + 3, room);
			compare_event(c, r, i, (struct event *)room);
			SAME(c, rows__u64(r, field(r, "level"), i) == ((struct note *)room)->level);
			SAME(c, text_is(r, "text", i, ((struct note *)room)->text, size - offsetof(struct note, text)));
		}
	}
	return 0;
}

static void round_trip(u32 n, u32 each, bool finish)
{
	struct comparison c = { .same = true };
	char err[256] = "";
	struct trace *t;
	u64 faults;
	size_t len = 0;
	u8 *bytes = support_write(n, each, finish, &len);

	REQUIRE(bytes && len);
	if (!CHECK(!support_open_bytes(&t, bytes, len, err, sizeof(err)))) {
		printf("# %s\n", err);
		free(bytes);
		return;
	}
	CHECK(!trace__read(t, NULL, compare, &c));
	CHECK(c.same);
	CHECK(c.every == (n + 1) / 2 && c.point == (n + 2) / 4 && c.note == n / 4);
	CHECK(trace__damaged(t) == 0);
	CHECK(trace__summary(t)->has_index == finish);
	CHECK(trace__summary(t)->torn_bytes == 0);
	CHECK(trace__summary(t)->file_bytes == len);
	CHECK(!trace__verify(t, &faults, err, sizeof(err)) && !faults);
	if (faults)
		printf("# %s\n", err);
	trace__close(t);
	free(bytes);
}

TEST(no_records)
{
	round_trip(0, 0, true);
	round_trip(0, 0, false);
}

TEST(one_record)
{
	round_trip(1, 0, true);
}

TEST(every_field_type_in_one_chunk)
{
	round_trip(1000, 0, true);
}

TEST(many_small_chunks)
{
	round_trip(1000, 7, true);
}

TEST(more_rows_than_a_chunk_holds)
{
	round_trip(200000, 0, true);
}

TEST(more_chunks_than_an_index_frame_holds)
{
	round_trip(2500, 1, true);
	round_trip(2500, 1, false);
}

TEST(without_index)
{
	round_trip(1000, 100, false);
}

TEST(head)
{
	char err[256] = "";
	struct trace *t;
	size_t len = 0;
	u8 *bytes = support_write(10, 0, true, &len);
	const struct trace_head *h;

	REQUIRE(bytes && !support_open_bytes(&t, bytes, len, err, sizeof(err)));
	h = trace__head(t);
	CHECK_TEXT(h->hostname, "host");
	CHECK_TEXT(h->machine_id, "");
	CHECK_TEXT(h->command, "sonde record");
	CHECK(h->cpus == 4 && h->monotonic == 1000000 && h->realtime == 1760000000123456789ULL);
	CHECK(trace__summary(t)->events == 10 + 1);
	trace__close(t);
	free(bytes);
}

static int count(const struct rows *r, void *arg)
{
	*(u64 *)arg += rows__count(r);
	return 0;
}

/* The number of the first n records that a filter selects, counted from the records themselves. */
static u64 expected(u32 n, const struct trace_filter *f)
{
	u64 m = 0;
	u32 i;

	for (i = 0; i < n; i++) {
		struct event e = support_event_at(i, ID_point);
		struct every v = support_every_at(i);
		u64 start = i % 2 ? e.time : v.call.span.start;

		m += trace_ids__have(&f->pids, e.pid) && trace_ids__have(&f->tids, e.tid) &&
		     (!f->to || (start < f->to && (e.time > f->from || start >= f->from)));
	}
	return m;
}

TEST(filters)
{
	char err[256] = "";
	struct trace *t;
	size_t len = 0;
	u32 n = 4000;
	u8 *bytes = support_write(n, 100, true, &len);
	struct trace_filter f[] = {
		{ .pids = { (const u32[]){ 101 }, 1 } },
		{ .pids = { (const u32[]){ 102, 100 }, 2 } },
		{ .tids = { (const u32[]){ 101003 }, 1 } },
		{ .from = 2000000, .to = 2000001 },
		{ .from = 1500000, .to = 3000000, .pids = { (const u32[]){ 100 }, 1 } },
		{ .from = 0, .to = 1 },
	};
	u32 i;

	REQUIRE(bytes && !support_open_bytes(&t, bytes, len, err, sizeof(err)));
	for (i = 0; i < sizeof(f) / sizeof(*f); i++) {
		const struct schema *s = trace__schema(t);
		const struct schema_event *kinds[] = { schema__event(s, "every"), schema__event(s, "note"),
						       schema__event(s, "point"), NULL };
		u64 got = 0;

		f[i].kinds = kinds;
		CHECK(!trace__read(t, &f[i], count, &got));
		if (!CHECK(got == expected(n, &f[i])))
			printf("# filter %u: %llu, not %llu\n", i, got, expected(n, &f[i]));
	}
	trace__close(t);
	free(bytes);
}

static int stop(const struct rows *r, void *arg)
{
	return ++*(int *)arg == 3 ? 42 : 0;
}

TEST(callback_stops_the_reading)
{
	char err[256] = "";
	struct trace *t;
	size_t len = 0;
	u8 *bytes = support_write(1000, 10, true, &len);
	int n = 0;

	REQUIRE(bytes && !support_open_bytes(&t, bytes, len, err, sizeof(err)));
	CHECK(trace__read(t, NULL, stop, &n) == 42 && n == 3);
	trace__close(t);
	free(bytes);
}

TEST_MAIN()
