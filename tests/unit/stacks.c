// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Stacks in a trace: names of frames, and no file can make a walk endless. */
#include "model/stacks.h"

#include "model/line.h"
#include "model/merge.h"
#include "stacks_support.h"
#include "test.h"

static struct stacks_file file;
static struct trace *trace;
static struct stacks *stacks;

static bool load(void)
{
	trace = stacks_open(&file);
	return trace && !stacks__load(&stacks, trace);
}

static void unload(void)
{
	stacks__free(stacks);
	trace__close(trace);
}

static const char *label(u32 id)
{
	static char buf[STACK_LABEL];

	return stacks__label(stacks, id, buf, sizeof(buf));
}

static const char *function(u32 id)
{
	static char buf[STACK_LABEL];

	return stacks__function(stacks, id, buf, sizeof(buf));
}

static const char *folded(u32 id)
{
	static char buf[STACK_LABEL];

	CHECK(stacks__folded(stacks, id, buf, sizeof(buf)) == strlen(buf));
	return buf;
}

static void write_names(void)
{
	stacks_code(&file, 1, "main", "/srv/app.py", 3);
	stacks_code(&file, 2, "Encoder.iterencode", "/usr/lib/python3.11/json/encoder.py", 200);
	stacks_code(&file, 3, "memcpy", "/usr/lib/x86_64-linux-gnu/libc.so.6", 0);
	stacks_code(&file, 4, "do_futex", "", 0);
	stacks_code(&file, 5, "", "/opt/libx.so", 0);
	stacks_code(&file, 6, "_find_and_load", "<frozen importlib._bootstrap>", 1);
	stacks_code(&file, 7, "get", "/venv/lib/python3.11/site-packages/requests/api.py", 1);
	stacks_code(&file, 8, "a;b c\x1b[2J\xff", "/x/y;z.py", 1);
	stacks_frame(&file, FRAME_CUT, 90, 0, 0, 0);
	stacks_frame(&file, FRAME_PYTHON, 10, 90, 1, 7);
	/* callees before their callers: the order in the file is arbitrary */
	stacks_frame(&file, FRAME_NATIVE, 30, 20, 3, 0);
	stacks_frame(&file, FRAME_PYTHON, 20, 10, 2, 257);
	stacks_frame(&file, FRAME_KERNEL, 40, 30, 4, 0);
	stacks_frame(&file, FRAME_NATIVE, 50, 0, 5, 4);
	stacks_frame(&file, FRAME_PYTHON, 60, 0, 99, 0);
	stacks_frame(&file, FRAME_PYTHON, 61, 10, 6, 1);
	stacks_frame(&file, FRAME_PYTHON, 62, 61, 7, 0);
	stacks_frame(&file, FRAME_PYTHON, 0x80000001, 10, 8, 5);
	stacks_frame(&file, FRAME_PYTHON, 0, 10, 8, 5); /* no frame has id 0 */
}

TEST(names_frames)
{
	u32 ids[8];

	REQUIRE(stacks_begin(&file, &support_head));
	write_names();
	REQUIRE(load());
	CHECK(stacks__count(stacks) == 10 && stacks__id(stacks, 0) == 10 && stacks__id(stacks, 9) == 0x80000001);
	CHECK(!stacks__broken(stacks));
	CHECK_TEXT(label(0), "?");
	CHECK_TEXT(label(12345), "?");
	CHECK_TEXT(label(20), "encoder.py:257 Encoder.iterencode");
	CHECK_TEXT(label(62), "api.py get");
	CHECK_TEXT(label(30), "memcpy (libc.so.6)");
	CHECK_TEXT(label(40), "do_futex (kernel)");
	CHECK_TEXT(label(50), "0x1004 (libx.so)");
	CHECK_TEXT(label(60), "[unknown]");
	CHECK_TEXT(label(90), "[cut]");
	CHECK_TEXT(function(20), "Encoder.iterencode (encoder.py)");
	CHECK_TEXT(function(40), "do_futex_[k]");
	CHECK_TEXT(folded(40), "[cut];main;Encoder.iterencode;memcpy;do_futex");
	CHECK_TEXT(folded(0x80000001), "[cut];main;a:b c\\x1b[2J\\xff");
	CHECK_TEXT(folded(0), "?");
	CHECK(stacks__depth(stacks, 40) == 5 && !stacks__depth(stacks, 0) && stacks__depth(stacks, 90) == 1);
	CHECK(stacks__path(stacks, 40, ids, 8) == 5 && ids[0] == 90 && ids[1] == 10 && ids[4] == 40);
	CHECK(stacks__path(stacks, 40, ids, 2) == 2 && ids[0] == 30 && ids[1] == 40);
	CHECK(!stacks__path(stacks, 0, ids, 8));
	CHECK(stacks__frame(stacks, 20)->first_line == 200 && stacks__frame(stacks, 20)->caller == 10);
	unload();
}

/* The recorder gives an evicted function a new id, and its texts too. */
TEST(merges_functions_with_two_ids)
{
	REQUIRE(stacks_begin(&file, &support_head));
	stacks_code(&file, 1, "work", "/srv/app.py", 3);
	stacks_code(&file, 2, "work", "/srv/app.py", 30);
	stacks_code(&file, 3, "", "/srv/app.py", 3);
	trace_writer__forget_texts(file.writer);
	stacks_code(&file, 11, "work", "/srv/app.py", 3);
	stacks_code(&file, 12, "work", "/srv/other.py", 3);
	stacks_code(&file, 13, "", "/srv/app.py", 3);
	for (u32 i = 1; i <= 3; i++) {
		stacks_frame(&file, FRAME_PYTHON, 100 + i, 0, i, 5);
		stacks_frame(&file, FRAME_PYTHON, 110 + i, 0, 10 + i, 5);
	}
	REQUIRE(load());
	CHECK(stacks__frame(stacks, 101)->code == 1 && stacks__frame(stacks, 111)->code == 1);
	CHECK(stacks__frame(stacks, 102)->code == 2 && stacks__frame(stacks, 112)->code == 12);
	CHECK(stacks__frame(stacks, 103)->code == 3 && stacks__frame(stacks, 113)->code == 13);
	CHECK_TEXT(label(111), "app.py:5 work");
	unload();
}

TEST(recognizes_the_users_code)
{
	REQUIRE(stacks_begin(&file, &support_head));
	write_names();
	stacks_code(&file, 20, "f", "/usr/lib/python3/dist-packages/x.py", 1);
	stacks_code(&file, 21, "f", "/usr/local/lib64/python3.14t/threading.py", 1);
	stacks_code(&file, 22, "f", "/home/python3.11/x.py", 1);
	for (u32 i = 20; i <= 22; i++)
		stacks_frame(&file, FRAME_PYTHON, 180 + i, 10, i, 1);
	REQUIRE(load());
	CHECK(stacks__top_user(stacks, 40) == 10); /* skips the kernel, libc and json */
	CHECK(stacks__top_user(stacks, 61) == 10); /* skips frozen modules */
	CHECK(stacks__top_user(stacks, 62) == 62); /* an installed package is not the standard library */
	CHECK(stacks__top_user(stacks, 50) == 50); /* without user code the innermost frame */
	CHECK(stacks__top_user(stacks, 0) == 0);
	CHECK(stacks__top_user(stacks, 200) == 200);
	CHECK(stacks__top_user(stacks, 201) == 10);
	CHECK(stacks__top_user(stacks, 202) == 202);
	unload();
}

TEST(bounds_hostile_frames)
{
	enum { LONG = 3 * STACKS_DEEPEST };
	static u32 ids[LONG];
	static char whole[10 * STACKS_DEEPEST];
	char small[8];

	REQUIRE(stacks_begin(&file, &support_head));
	/* a frame that is its own caller, a cycle of two with a tail, an unknown caller, a duplicate id */
	stacks_frame(&file, FRAME_PYTHON, 1, 1, 0, 0);
	stacks_frame(&file, FRAME_PYTHON, 2, 3, 0, 0);
	stacks_frame(&file, FRAME_PYTHON, 3, 2, 0, 0);
	stacks_frame(&file, FRAME_PYTHON, 4, 3, 0, 0);
	stacks_frame(&file, FRAME_PYTHON, 5, 4000000000u, 0, 0);
	stacks_frame(&file, FRAME_PYTHON, 6, 5, 0, 0);
	stacks_frame(&file, FRAME_PYTHON, 6, 5, 0, 0);
	for (u32 i = 0; i < LONG; i++)
		stacks_frame(&file, 77, 1000 + i, i ? 999 + i : 0, 0xffffffff, 0);
	REQUIRE(load());
	CHECK(stacks__count(stacks) == 6 + LONG);
	CHECK(stacks__broken(stacks) == 1 + 1 + 1 + 2);
	CHECK(stacks__depth(stacks, 1) == 1);
	CHECK(stacks__depth(stacks, 2) + stacks__depth(stacks, 3) == 3);
	CHECK(stacks__path(stacks, 4, ids, LONG) == stacks__depth(stacks, 4) && stacks__depth(stacks, 4) <= 3);
	CHECK(stacks__depth(stacks, 6) == 2);
	for (u32 i = 0; i < LONG; i++)
		CHECK(stacks__depth(stacks, 1000 + i) == i % STACKS_DEEPEST + 1);
	CHECK(stacks__path(stacks, 999 + LONG, ids, LONG) == STACKS_DEEPEST);
	CHECK(stacks__top_user(stacks, 999 + LONG) == 999 + LONG);
	CHECK(stacks__folded(stacks, 999 + LONG, small, sizeof(small)) >= sizeof(small));
	CHECK_TEXT(small, "[unknow");
	CHECK(stacks__folded(stacks, 999 + LONG, whole, sizeof(whole)) == 10 * STACKS_DEEPEST - 1);
	unload();
}

TEST(accepts_a_trace_without_stacks)
{
	size_t len = 0;
	u8 *bytes = support_write(100, 10, true, &len);
	char err[256];

	REQUIRE(bytes && !support_open_bytes(&trace, bytes, len, err, sizeof(err)));
	REQUIRE(!stacks__load(&stacks, trace));
	CHECK(!stacks__count(stacks) && !stacks__frame(stacks, 1) && !stacks__depth(stacks, 1));
	CHECK_TEXT(label(1), "?");
	unload();
	free(bytes);
}

static int print_hits(const struct rows *rows, void *arg)
{
	const struct line_context *c = arg;
	struct view v = { .event = rows__event(rows), .rows = rows };
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	for (; v.i < rows__count(rows); v.i++)
		line__print(out, c, &v);
	fclose(out);
	if (!strcmp(v.event->name, "hit"))
		CHECK(strstr(text, " stack=\"app.py:7 main\" other=- where=1 plain=10"));
	else if (!strcmp(v.event->name, "meta_frame"))
		CHECK(strstr(text, " frame=10 caller=90 code=1 line=7 "));
	free(text);
	return 0;
}

TEST(prints_labels)
{
	struct trace_filter all = {};
	struct line_context c;

	REQUIRE(stacks_begin(&file, &support_head));
	write_names();
	stacks_hit(&file, 10, 0, 1);
	REQUIRE(load());
	c = (struct line_context){ .schema = trace__schema(trace), .stacks = stacks };
	CHECK(!trace__read(trace, &all, print_hits, &c));
	unload();
}

/* The frames that events of a merged trace refer to, by name */
static char said[512];

static int say_hits(const struct rows *rows, void *arg)
{
	const struct schema_event *e = rows__event(rows);
	char a[STACK_LABEL], b[STACK_LABEL];
	size_t used;

	for (u32 i = 0; i < rows__count(rows); i++) {
		used = strlen(said);
		snprintf(said + used, sizeof(said) - used, "%s|%s|%llu\n",
			 stacks__label(stacks, (u32)rows__u64(rows, schema_event__field(e, "stack"), i), a, sizeof(a)),
			 stacks__label(stacks, (u32)rows__u64(rows, schema_event__field(e, "other"), i), b, sizeof(b)),
			 rows__u64(rows, schema_event__field(e, "where"), i));
	}
	return 0;
}

static int count_codes(const struct rows *rows, void *arg)
{
	const struct schema_event *e = rows__event(rows);
	u32 *seen = arg;

	for (u32 i = 0; i < rows__count(rows); i++)
		seen[(u32)rows__u64(rows, schema_event__field(e, "code"), i) % 8]++;
	return 0;
}

TEST(merges_with_new_ids)
{
	struct trace *parts[2] = { NULL, NULL };
	const char *names[2] = { "a", "b" };
	char path[64], err[256] = "";
	u32 seen[8] = {};
	int fd = support_memfd(path, sizeof(path));
	const struct schema_event *kinds[2] = {};
	struct trace_filter filter = { .kinds = kinds };

	/* both traces use the same ids for different frames, and only the second has frame 3 */
	for (u32 i = 0; i < 2; i++) {
		REQUIRE(stacks_begin(&file, &support_head));
		stacks_code(&file, 1, i ? "second" : "first", "/x.py", 1);
		stacks_frame(&file, FRAME_PYTHON, 1, 0, 1, 10 + i);
		stacks_frame(&file, FRAME_PYTHON, 2, 1, 1, 20 + i);
		if (i)
			stacks_frame(&file, FRAME_PYTHON, 3, 2, 1, 30);
		stacks_hit(&file, 2, 3, 1);
		parts[i] = stacks_open(&file);
		REQUIRE(parts[i]);
	}
	CHECK(!merge__traces(parts, names, 2, fd, err, sizeof(err)));
	REQUIRE(!trace__open(&trace, path, err, sizeof(err)) && !stacks__load(&stacks, trace));
	CHECK(stacks__count(stacks) == 5 && !stacks__broken(stacks));
	kinds[0] = schema__event(trace__schema(trace), "hit");
	trace__read(trace, &filter, say_hits, NULL);
	CHECK_TEXT(said, "x.py:20 first|?|1\nx.py:21 second|x.py:30 second|2\n");
	kinds[0] = schema__event(trace__schema(trace), "meta_code");
	trace__read(trace, &filter, count_codes, seen);
	CHECK(seen[1] == 1 && seen[2] == 1);
	unload();
	trace__close(parts[0]);
	trace__close(parts[1]);
	close(fd);
}

TEST_MAIN()
