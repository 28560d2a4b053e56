// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tables: as text, CSV and JSON, sorted, limited. */
#include <cjson/cJSON.h>
#include <errno.h>

#include "output/table.h"
#include "test.h"

static const struct column columns[] = {
	{ "name", "Name", VALUE_TEXT, SHOW_PLAIN },  { "wait_ns", "Waited", VALUE_U64, SHOW_NS },
	{ "delta", "Delta", VALUE_S64, SHOW_PLAIN }, { "share_percent", "Share", VALUE_DOUBLE, SHOW_PERCENT },
	{ "gil", "GIL", VALUE_U64, SHOW_NEVER },
};

static struct table *example(struct report_output *out)
{
	struct table *t;

	memset(out, 0, sizeof(*out));
	out->name = "example";
	t = REPORT_TABLE(out, "rows", "Rows", columns);
	table__add(t, V_TEXT("b,\"quoted\""), V_U64(1234567), V_S64(-5), V_DBL(12.34), V_U64(18446744073709551615ull));
	table__add(t, V_TEXT("a\x1b[31m\n"), V_U64(999), V_S64(0), V_DBL(0.1), V_U64(9007199254740993ull));
	table__add(t, V_NONE, V_U64(2000000000), V_NONE, V_NONE, V_U64(0));
	return t;
}

/* The printed output; the caller frees it. */
static char *print_in(u32 width, const struct report_output *out, enum output_format format, s64 rows)
{
	struct output_options options = { .format = format, .rows = rows, .width = width };
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (report_output__print(out, &options, f))
		fputs("FAILED", f);
	fclose(f);
	return text;
}

static char *print(const struct report_output *out, enum output_format format, s64 rows)
{
	return print_in(0, out, format, rows);
}

static bool is(char *text, const char *expected)
{
	bool same = !strcmp(text, expected);

	if (!same)
		printf("# got:\n%s# expected:\n%s", text, expected);
	free(text);
	return same;
}

TEST(text_has_units_and_no_control_characters)
{
	struct report_output out;

	example(&out);
	CHECK(is(print(&out, OUTPUT_TABLE, -1), "Rows\n"
						"Name           Waited  Delta  Share\n"
						"b,\"quoted\"   1.234 ms     -5   12.3\n"
						"a\\x1b[31m\\n    999 ns      0    0.1\n"
						"-            2.000 s       -      -\n"
						"\n"));
	report_output__free(&out);
}

TEST(times_before_the_start_are_negative)
{
	static const struct column moments[] = { { "from_ns", "From (s)", VALUE_S64, SHOW_SECONDS } };
	struct report_output out = { .name = "moments" };
	struct table *t = REPORT_TABLE(&out, "rows", "Rows", moments);

	table__add(t, V_S64(-809551616));
	table__add(t, V_S64(1500000000));
	CHECK(is(print(&out, OUTPUT_TABLE, -1), "Rows\n"
						" From (s)\n"
						"-0.809551\n"
						" 1.500000\n"
						"\n"));
	report_output__free(&out);
}

TEST(csv_quotes_and_keeps_exact_numbers)
{
	struct report_output out;

	example(&out);
	CHECK(is(print(&out, OUTPUT_CSV, -1), "# rows\n"
					      "name,wait_ns,delta,share_percent,gil\n"
					      "\"b,\"\"quoted\"\"\",1234567,-5,12.34,18446744073709551615\n"
					      "a\\x1b[31m\\n,999,0,0.1,9007199254740993\n"
					      ",2000000000,,,0\n"));
	report_output__free(&out);
}

TEST(csv_distinguishes_empty_from_unknown)
{
	static const struct column one[] = { { "x", "X", VALUE_TEXT, SHOW_PLAIN } };
	struct report_output out = { .name = "x" };
	struct table *t = REPORT_TABLE(&out, "t", "T", one);

	table__add(t, V_TEXT(""));
	table__add(t, V_NONE);
	table__add(t, V_TEXT("# no comment"));
	CHECK(is(print(&out, OUTPUT_CSV, -1), "# t\nx\n\"\"\n\n\"# no comment\"\n"));
	report_output__free(&out);
}

TEST(json_is_exact_and_valid)
{
	struct report_output out;
	char *text;
	cJSON *json, *row;

	example(&out);
	text = print(&out, OUTPUT_JSON, -1);
	/* as text, as a double would round them */
	CHECK(strstr(text, ":\t18446744073709551615"));
	CHECK(strstr(text, ":\t9007199254740993"));
	CHECK(strstr(text, ":\t12.34"));
	json = cJSON_Parse(text);
	REQUIRE(json);
	CHECK(!strcmp(cJSON_GetObjectItem(json, "report")->valuestring, "example"));
	row = cJSON_GetArrayItem(cJSON_GetObjectItem(cJSON_GetObjectItem(json, "tables"), "rows"), 1);
	REQUIRE(row);
	CHECK(!strcmp(cJSON_GetObjectItem(row, "name")->valuestring, "a\x1b[31m\n"));
	row = row->next;
	CHECK(cJSON_IsNull(cJSON_GetObjectItem(row, "name")));
	CHECK(cJSON_IsNull(cJSON_GetObjectItem(row, "share_percent")));
	cJSON_Delete(json);
	free(text);
	report_output__free(&out);
}

TEST(json_accepts_invalid_utf8)
{
	static const struct column one[] = { { "x", "X", VALUE_TEXT, SHOW_PLAIN } };
	struct report_output out = { .name = "x" };
	char *text;

	table__add(REPORT_TABLE(&out, "t", "T", one), V_TEXT("a\xff\xc3(\xed\xa0\x80z"));
	text = print(&out, OUTPUT_JSON, -1);
	CHECK(strstr(text, "\"a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\""));
	free(text);
	report_output__free(&out);
}

TEST(figures_sort_downwards_and_texts_upwards)
{
	struct report_output out;
	struct table *t = example(&out);

	CHECK(!table__sort(t, "wait_ns") && table__row(t, 0)[1].u == 2000000000 && table__row(t, 2)[1].u == 999);
	CHECK(!table__sort(t, "+Waited") && table__row(t, 0)[1].u == 999);
	CHECK(!table__sort(t, "-waited") && table__row(t, 0)[1].u == 2000000000);
	/* unknown comes before any text */
	CHECK(!table__sort(t, "NAME") && table__row(t, 0)[0].type == VALUE_NONE && table__row(t, 1)[0].text[0] == 'a');
	CHECK(!table__sort(t, "-name") && table__row(t, 0)[0].text[0] == 'b');
	CHECK(table__sort(t, "colour") == -ENOENT);
	report_output__free(&out);
}

TEST(equal_rows_keep_their_order)
{
	static const struct column two[] = { { "k", "K", VALUE_U64, SHOW_PLAIN }, { "n", "N", VALUE_U64, SHOW_PLAIN } };
	struct report_output out = { .name = "x" };
	struct table *t = REPORT_TABLE(&out, "t", "T", two);
	bool ordered = true;
	u64 i;

	for (i = 0; i < 1000; i++)
		table__add(t, V_U64(i % 3), V_U64(i));
	CHECK(!report_output__sort(&out, "k"));
	for (i = 1; i < 1000; i++) {
		const struct value *a = table__row(t, (u32)i - 1), *b = table__row(t, (u32)i);

		ordered &= a[0].u > b[0].u || (a[0].u == b[0].u && a[1].u < b[1].u);
	}
	CHECK(ordered);
	report_output__free(&out);
}

TEST(omitted_rows_are_reported)
{
	struct report_output out;
	struct table *t = example(&out);
	char *text;

	t->limit = 1;
	text = print(&out, OUTPUT_TABLE, -1);
	CHECK(strstr(text, "... 1 of 3 rows"));
	free(text);
	text = print(&out, OUTPUT_TABLE, 0);
	CHECK(!strstr(text, "..."));
	free(text);
	/* a table's own limit applies only to text */
	text = print(&out, OUTPUT_CSV, -1);
	CHECK(strstr(text, "2000000000"));
	free(text);
	text = print(&out, OUTPUT_JSON, 2);
	CHECK(!strstr(text, "2000000000"));
	free(text);
	report_output__free(&out);
}

/* In this order: several lines of heading, equal values above the table, shorter texts, no details. */
TEST(a_table_fits_into_the_line)
{
	static const struct column wide[] = {
		{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
		{ "file", "File", VALUE_TEXT, SHOW_PLAIN },
		{ "held", "Mostly held by", VALUE_U64, SHOW_COUNT },
		{ "none", "Never", VALUE_U64, SHOW_COUNT },
		{ "median_ns", "Median of all waits", VALUE_U64, SHOW_NS },
	};
	struct report_output out = { .name = "wide" };
	struct table *t = REPORT_TABLE(&out, "rows", "Rows", wide);

	t->details = "median_ns";
	table__add(t, V_U64(4711), V_TEXT("/usr/lib/python3.11/threading.py"), V_U64(1), V_NONE, V_U64(1234567));
	table__add(t, V_U64(4711), V_TEXT("/srv/app.py"), V_U64(1234), V_NONE, V_U64(999));
	CHECK(is(print(&out, OUTPUT_TABLE, -1),
		 "Rows\n"
		 " PID  File                              Mostly held by  Median of all waits\n"
		 "4711  /usr/lib/python3.11/threading.py               1             1.234 ms\n"
		 "4711  /srv/app.py                                1,234               999 ns\n\n"));
	CHECK(is(print_in(60, &out, OUTPUT_TABLE, -1), "Rows\n"
						       "                                        Mostly    Median\n"
						       "                                          held    of all\n"
						       " PID  File                                  by     waits\n"
						       "4711  /usr/lib/python3.11/threading.py       1  1.234 ms\n"
						       "4711  /srv/app.py                        1,234    999 ns\n\n"));
	CHECK(is(print_in(52, &out, OUTPUT_TABLE, -1), "Rows\n"
						       "PID: 4711 (in all rows)\n"
						       "                                  Mostly    Median\n"
						       "                                    held    of all\n"
						       "File                                  by     waits\n"
						       "/usr/lib/python3.11/threading.py       1  1.234 ms\n"
						       "/srv/app.py                        1,234    999 ns\n\n"));
	CHECK(is(print_in(32, &out, OUTPUT_TABLE, -1), "Rows\n"
						       "PID: 4711 (in all rows)\n"
						       "                          Mostly\n"
						       "                            held\n"
						       "File                          by\n"
						       "/usr/lib/py..hreading.py       1\n"
						       "/srv/app.py                1,234\n\n"));
	report_output__free(&out);
}

/* A headline, at most three lines of evidence, and the command, which is never broken */
TEST(a_finding_is_a_card)
{
	static const u16 clauses[] = { 28, 33, 39, 49 };
	struct report_output out = { .name = "x" };

	report_output__finding(&out, "svc.py 7 waited 90%% of 1 s: one; a\x1b b; then c d; e f.");
	report_output__clauses(&out, clauses, ARRAY_LEN(clauses));
	report_output__next(&out, "sonde report a b");
	REPORT_FIELDS(&out, FIELD("kind", V_TEXT("lock")), FIELD("next", V_TEXT("sonde report a b")));
	CHECK(is(print_in(30, &out, OUTPUT_TABLE, -1), "svc.py 7 waited 90% of 1 s\n"
						       "    one\n"
						       "    a\\x1b b\n"
						       "    then c d; e f\n"
						       "    Next: `sonde report a b`.\n"));
	CHECK(is(print_in(14, &out, OUTPUT_TABLE, -1), "svc.py 7\n"
						       "  waited 90%\n"
						       "  of 1 s\n"
						       "    one\n"
						       "    a\\x1b b\n"
						       "    then c d;\n"
						       "      e f\n"
						       "    Next: `sonde report a b`.\n"));
	report_output__free(&out);
}

TEST(an_empty_table_has_a_text)
{
	struct report_output out = { .name = "x" };

	REPORT_TABLE(&out, "t", "Title", columns);
	CHECK(is(print(&out, OUTPUT_TABLE, -1), "Title\n(none)\n\n"));
	report_output__finding(&out, "Nothing %s.", "there");
	CHECK(is(print(&out, OUTPUT_TABLE, -1), "Nothing there.\n\n"));
	CHECK(is(print(&out, OUTPUT_CSV, -1),
		 "# finding: Nothing there.\n# t\nname,wait_ns,delta,share_percent,gil\n"));
	report_output__free(&out);
}

/* A table may have a row per thread and time slot: if it is not printed it uses no memory. */
TEST(json_and_csv_store_no_rows_for_text)
{
	static const struct column numbers[] = { { "count", "Count", VALUE_U64, SHOW_COUNT } };

	for (u32 people = 0; people < 2; people++) {
		struct report_output out = { .name = "x", .for_people = people };
		struct table *t = REPORT_MACHINE_TABLE(&out, "parts", "Parts", numbers);

		REPORT_TABLE(&out, "rows", "Rows", numbers);
		table__add(t, V_U64(7));
		table__add(out.tables->next, V_U64(8));
		CHECK(t->n_rows == !people);
		CHECK(is(print(&out, OUTPUT_TABLE, -1), "Rows\nCount\n    8\n\n"));
		if (!people)
			CHECK(is(print(&out, OUTPUT_CSV, -1), "# parts\ncount\n7\n# rows\ncount\n8\n"));
		report_output__free(&out);
	}
}

TEST_MAIN()
