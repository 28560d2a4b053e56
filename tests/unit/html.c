// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The HTML report: nothing that a target names becomes markup, and its size has a bound. */
#include <cjson/cJSON.h>

#include "export/calls.h"
#include "export/html_timeline.h"
#include "output/html.h"
#include "output/text.h"
#include "test.h"
#include "trace_made.h"

#define HOSTILE "</script><img src=x onerror='a(\"b\")'>&lt;\xff\x1b[2J\xe2\x80\xae"

/* What fn writes of the text; the caller frees it. */
static char *written(void (*fn)(FILE *out, const char *text), const char *text)
{
	char *buf = NULL;
	size_t len;
	FILE *out = open_memstream(&buf, &len);

	fn(out, text);
	fclose(out);
	return buf;
}

TEST(text_holds_no_markup)
{
	char *text = written(html__put_text, HOSTILE);

	CHECK_TEXT(
		text,
		"&#60;/script&#62;&#60;img src=x onerror=&#39;a(&#34;b&#34;)&#39;&#62;&#38;lt;\\xff\\x1b[2J\\u{202e}");
	free(text);
}

TEST(json_ends_no_script_and_reads_back)
{
	char *text = written(html__put_json, HOSTILE);
	cJSON *json = cJSON_Parse(text);

	CHECK(!strpbrk(text, "<>&'"));
	REQUIRE(json);
	CHECK_TEXT(json->valuestring, "</script><img src=x onerror='a(\"b\")'>&lt;\\xff\\x1b[2J\\u{202e}");
	cJSON_Delete(json);
	free(text);
}

static void put_attribute(FILE *out, const char *text)
{
	FILE *value = html__attribute(out);

	fputs(text, value);
	fclose(value);
}

TEST(an_attribute_does_not_end)
{
	char *text = written(put_attribute, "<a b=\"c\" d='e'>&amp;");

	CHECK_TEXT(text, "<a b=\"c\" d=&#39;e&#39;>&#38;amp;");
	free(text);
}

TEST(a_text_is_shortened_in_its_middle)
{
	char text[] = "abcdefghij", wide[] = "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f\xe2\x82\xac\xe2\x82\xac", same[] = "abc";

	text__shorten(text, 6);
	CHECK_TEXT(text, "ab..ij");
	text__shorten(wide, 5);
	CHECK_TEXT(wide, "\xc3\xa4\xc3\xb6..\xe2\x82\xac");
	text__shorten(same, 3);
	CHECK_TEXT(same, "abc");
}

static const struct column columns[] = {
	{ HOSTILE, HOSTILE, VALUE_TEXT, SHOW_PLAIN },
	{ "wait_ns", "Waited", VALUE_U64, SHOW_NS },
	{ "never", "Never", VALUE_U64, SHOW_NEVER },
};

TEST(a_table_is_escaped_and_cut)
{
	struct report_output out = { .name = "example" };
	struct table *t = REPORT_TABLE(&out, "rows", HOSTILE, columns);
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	for (u64 i = 0; i < 5; i++)
		table__add(t, V_TEXT(HOSTILE), V_U64(1500 + i), V_U64(77));
	html__put_table(file, t, 3, "sonde report FILE x -n 0");
	fclose(file);
	CHECK(!strstr(text, "<img") && !strstr(text, "</script") && !strstr(text, "Never"));
	CHECK(strstr(text, "<td class=\"n\" data-v=\"1502\">1.502 us</td>") && !strstr(text, "1503"));
	CHECK(strstr(text, "3 of 5 rows; <code>sonde report FILE x -n 0</code>"));
	free(text);
	report_output__free(&out);
}

static u64 share_sum(const struct timeline_line *l, enum finding_colour colour)
{
	double sum = 0;

	for (u32 i = 0; i < l->n; i++)
		sum += (double)l->runs[i].shares[colour] * l->runs[i].n * (double)l->width;
	return (u64)(sum + 0.5);
}

/* A thread that changes its state each us, and one that does not */
TEST(a_time_line_has_a_bound_and_keeps_the_sums)
{
	struct timeline_key busy = { .pid = 1, .tid = 1 }, quiet = { .pid = 2, .tid = 2 };
	struct html_timeline t;
	const struct timeline_line *l;
	u32 before = timeline_runs_max;

	timeline_runs_max = 1000;
	html_timeline__init(&t, 1000, 1000001000);
	REQUIRE(!html_timeline__add(&t, quiet, 1000, 300001000, COLOUR_DISK, 7));
	REQUIRE(!html_timeline__add(&t, quiet, 300001000, 1000001000, COLOUR_IDLE, 8));
	for (u64 at = 1000; at < 1000001000; at += 10000) {
		REQUIRE(!html_timeline__add(&t, busy, at, at + 2500, COLOUR_RUN, 1));
		REQUIRE(!html_timeline__add(&t, busy, at + 2500, at + 10000, COLOUR_GIL, 2));
	}
	CHECK(t.runs <= 1000);
	l = map__find(&t.lines, &quiet);
	CHECK(l->n <= 4 && l->runs[0].what == 7 && l->runs[l->n - 1].what == 8);
	CHECK(l->known_ns == 1000000000 && l->busy_ns == 300000000);
	l = map__find(&t.lines, &busy);
	CHECK(l->n <= 1000 && l->busy_ns == 1000000000);
	CHECK(share_sum(l, COLOUR_RUN) / 1000000 == 250 || share_sum(l, COLOUR_RUN) / 1000000 == 249);
	CHECK(share_sum(l, COLOUR_GIL) / 1000000 == 750 || share_sum(l, COLOUR_GIL) / 1000000 == 749);
	html_timeline__free(&t);
	timeline_runs_max = before;
}

/* The moments of a damaged trace may be any numbers. */
TEST(a_time_line_may_be_as_long_as_numbers_are)
{
	struct html_timeline t;

	html_timeline__init(&t, 0, ~0ULL);
	REQUIRE(!html_timeline__add(&t, (struct timeline_key){ 1, 1, 0 }, 5, ~0ULL - 5, COLOUR_RUN, 1));
	REQUIRE(!html_timeline__add(&t, (struct timeline_key){ 1, 1, 0 }, ~0ULL - 5, ~0ULL, COLOUR_IDLE, 2));
	CHECK(t.runs >= 1 && t.runs <= 4);
	html_timeline__free(&t);
}

/* A thread whose number was in use before has an id with the highest bit set. */
TEST(a_thread_is_no_gpu)
{
	static const char schema[] = "{\"families\":[],\"options\":[],\"enums\":[],\"events\":[]}";
	struct timeline_key thread = { 1, TRACE_TASK_IDS + 1, 0 }, gpu = { 1, 1, 1 },
			    same = { 1, TRACE_TASK_IDS + 1, 1 };
	struct made_trace made;
	struct query q = { 0 };
	struct html_timeline t;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	REQUIRE(out && made_trace__of(&made, schema, NULL, 0, 0));
	q.names = made.names;
	html_timeline__init(&t, 0, 1000);
	REQUIRE(!html_timeline__add(&t, thread, 0, 100, COLOUR_RUN, 1));
	REQUIRE(!html_timeline__add(&t, same, 0, 300, COLOUR_RUN, WHAT_GPU_BUSY));
	REQUIRE(!html_timeline__add(&t, gpu, 0, 200, COLOUR_RUN, WHAT_GPU_BUSY));
	CHECK(t.lines.n == 3);
	REQUIRE(!html_timeline__write(&t, &q, out));
	fclose(out);
	CHECK(strstr(text, "[1,2147483649,\"\",\"\",100,") && strstr(text, "[1,-1,\"\",\"GPU 1\",200,"));
	free(text);
	html_timeline__free(&t);
	made_trace__free(&made);
}

TEST(intervals_have_in_common_what_they_were)
{
	struct what wait = { .reason = 5, .stack = 7, .caused_by = { 1, 2 } }, other = { .reason = 5, .stack = 8 };
	struct what run = { .reason = 6 }, idle = { .reason = 5, .colour = COLOUR_IDLE };
	struct whats w;
	u32 numbers[4];

	whats__init(&w);
	numbers[0] = whats__number(&w, &wait);
	numbers[1] = whats__number(&w, &other);
	numbers[2] = whats__number(&w, &run);
	numbers[3] = whats__number(&w, &idle);
	CHECK(numbers[0] != numbers[1] && numbers[0] == whats__number(&w, &wait));
	CHECK(whats__get(&w, numbers[0])->stack == 7 && whats__get(&w, numbers[0])->caused_by.tid == 2);
	CHECK(whats__common(&w, numbers[0], numbers[0]) == numbers[0]);
	/* the same call in two stacks is that call */
	CHECK(whats__get(&w, whats__common(&w, numbers[0], numbers[1]))->reason == 5);
	CHECK(!whats__get(&w, whats__common(&w, numbers[0], numbers[1]))->stack);
	CHECK(whats__common(&w, numbers[0], numbers[2]) == WHAT_MIXED);
	CHECK(whats__common(&w, numbers[0], numbers[3]) == WHAT_MIXED);
	CHECK(whats__common(&w, numbers[0], WHAT_GPU_BUSY) == WHAT_MIXED && !whats__get(&w, WHAT_MIXED));
	whats__free(&w);
}

TEST(many_threads_have_a_bound)
{
	struct html_timeline t;
	u32 before = timeline_runs_max;

	timeline_runs_max = 2000;
	html_timeline__init(&t, 0, 1000000000);
	for (u32 i = 0; i < 100; i++)
		for (u64 at = 0; at < 1000000000; at += 1000000)
			REQUIRE(!html_timeline__add(&t, (struct timeline_key){ 1, 1 + i, 0 }, at,
						    at + 100000 * (1 + i % 7), COLOUR_RUN, 1));
	CHECK(t.runs <= 2000);
	html_timeline__free(&t);
	timeline_runs_max = before;
}

TEST(a_tree_is_limited_to_its_largest_nodes)
{
	struct call_functions f;
	struct call_tree t, *trees[] = { &t };
	u32 function, hot, at;
	u64 least, sum = 0;

	REQUIRE(!call_functions__init(&f, NULL) && !call_tree__init(&t, &f, false));
	REQUIRE(!call_functions__note(&f, CALL_NOTE, "hot", &function) && !call_tree__child(&t, 0, function, 0, &hot));
	t.nodes[hot].self = 1000;
	for (u32 i = 0; i < 100; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		REQUIRE(!call_functions__note(&f, CALL_NOTE, name, &function) &&
			!call_tree__child(&t, i % 2 ? hot : 0, function, 0, &at));
		t.nodes[at].self = i;
		t.nodes[at].count = 1;
	}
	REQUIRE(!call_tree__limit(&t, 10, &least));
	CHECK(t.n <= 11 && least > 0);
	for (u32 i = 0; i < t.n; i++) {
		sum += t.nodes[i].self;
		CHECK(!i || t.nodes[i].parent < i);
	}
	CHECK(sum == 1000 + 99 * 100 / 2);
	REQUIRE(!call_functions__drop_unused(&f, trees, 1));
	CHECK(f.n == t.n - 1);
	for (u32 i = 1; i < t.n; i++)
		CHECK(t.nodes[i].function < f.n);
	call_tree__free(&t);
	call_functions__free(&f);
}

TEST_MAIN()
