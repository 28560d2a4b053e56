// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Escaping of texts, numbers with units. */
#include "output/json_writer.h"
#include "output/text.h"
#include "test.h"

static bool cleans(const char *text, size_t len, const char *expected)
{
	char *clean = text__clean(text, len);
	bool same = clean && !strcmp(clean, expected);

	if (!same)
		printf("# got %s, expected %s\n", clean, expected);
	free(clean);
	return same;
}

TEST(control_characters_are_shown)
{
	CHECK(cleans("plain", 5, "plain"));
	CHECK(cleans("a\n\t\r\x1b\x7f", 6, "a\\n\\t\\r\\x1b\\x7f"));
	CHECK(cleans("nul\0x", 5, "nul\\x00x"));
	/* C1 controls, which some terminals treat as escapes */
	CHECK(cleans("\xc2\x9b", 2, "\\x9b"));
	/* reverses the direction of the following text */
	CHECK(cleans("\xe2\x80\xae", 3, "\\u{202e}"));
	/* direction, soft hyphen, a tag that spells an A */
	CHECK(cleans("\xd8\x9c", 2, "\\u{061c}"));
	CHECK(cleans("\xc2\xad", 2, "\\xad"));
	CHECK(cleans("\xf3\xa0\x81\x81", 4, "\\u{e0041}"));
	CHECK(cleans("", 0, ""));
}

TEST(valid_utf8_stays_and_invalid_is_escaped)
{
	CHECK(cleans("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"));
	CHECK(cleans("\xff\xc3", 2, "\\xff\\xc3"));
	CHECK(cleans("\xc0\x80", 2, "\\xc0\\x80"));
	CHECK(cleans("\xe0\x80\x80", 3, "\\xe0\\x80\\x80"));
	CHECK(cleans("\xed\xa0\x80", 3, "\\xed\\xa0\\x80"));
	CHECK(cleans("\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80"));
}

static bool puts_csv(const char *text, const char *expected)
{
	char got[128] = "";
	FILE *f = fmemopen(got, sizeof(got), "w");
	bool same;

	if (!f)
		return false;
	text__put_csv(f, text);
	fclose(f);
	same = !strcmp(got, expected);
	if (!same)
		printf("# got %s, expected %s\n", got, expected);
	return same;
}

TEST(a_cell_is_no_formula)
{
	CHECK(puts_csv("train.py", "train.py") && puts_csv("", ""));
	CHECK(puts_csv("a,b\"c", "\"a,b\"\"c\""));
	CHECK(puts_csv("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"));
	CHECK(puts_csv("+1", "'+1") && puts_csv("-1", "'-1") && puts_csv("@SUM(A1,A2)", "\"'@SUM(A1,A2)\""));
	CHECK(puts_csv("a=b", "a=b"));
}

static bool puts_json(const char *text, const char *expected)
{
	char got[128] = "";
	FILE *f = fmemopen(got, sizeof(got), "w");
	bool same;

	if (!f)
		return false;
	json__print_text(f, text, strlen(text));
	fclose(f);
	same = !strcmp(got, expected);
	if (!same)
		printf("# got %s, expected %s\n", got, expected);
	return same;
}

TEST(json_has_no_raw_control_characters)
{
	CHECK(puts_json("plain", "\"plain\"") && puts_json("\xc3\xa4", "\"\xc3\xa4\""));
	CHECK(puts_json("\x1b\n\"\\", "\"\\u001b\\n\\\"\\\\\""));
	CHECK(puts_json("\x7f\xc2\x80\xc2\x9b", "\"\\u007f\\u0080\\u009b\""));
	CHECK(puts_json("\xe2\x80\xae\xe2\x81\xa6", "\"\\u202e\\u2066\""));
	/* beyond U+FFFF: a surrogate pair; invalid UTF-8: U+FFFD */
	CHECK(puts_json("\xf3\xa0\x81\x81", "\"\\udb40\\udc41\"") && puts_json("\x9b", "\"\xef\xbf\xbd\""));
}

TEST(every_pair_of_bytes_is_cleaned_within_bounds)
{
	char pair[2], *clean;
	unsigned int i;
	bool fine = true;

	for (i = 0; i < 65536; i++) {
		pair[0] = (char)i;
		pair[1] = (char)(i >> 8);
		clean = text__clean(pair, 2);
		fine &= clean && !strpbrk(clean, "\n\x1b\x7f");
		free(clean);
		clean = text__utf8(pair, 2);
		fine &= clean != NULL;
		free(clean);
	}
	CHECK(fine);
}

TEST(width_is_in_characters)
{
	CHECK(text__width("\xc3\xa4\xe2\x82\xac") == 2);
	CHECK(text__width("") == 0);
}

static bool shows(char *(*format)(char *, size_t, u64), u64 n, const char *expected)
{
	char buf[TEXT_NUMBER];

	if (!strcmp(format(buf, sizeof(buf), n), expected))
		return true;
	printf("# got %s, expected %s\n", buf, expected);
	return false;
}

TEST(durations)
{
	CHECK(shows(text__ns, 0, "0 ns"));
	CHECK(shows(text__ns, 999, "999 ns"));
	CHECK(shows(text__ns, 1000, "1.000 us"));
	CHECK(shows(text__ns, 999999, "999.999 us"));
	CHECK(shows(text__ns, 1234567, "1.234 ms"));
	CHECK(shows(text__ns, 999999999, "999.999 ms"));
	CHECK(shows(text__ns, 83100000000, "83.100 s"));
	CHECK(shows(text__ns, ~0ull, "18446744073.709 s"));
}

TEST(bytes)
{
	CHECK(shows(text__bytes, 1023, "1023 B"));
	CHECK(shows(text__bytes, 1024, "1.00 KiB"));
	CHECK(shows(text__bytes, 1572864, "1.50 MiB"));
	CHECK(shows(text__bytes, (1ull << 30) - 1, "1.00 GiB"));
	CHECK(shows(text__bytes, ~0ull, "16.00 EiB"));
}

TEST(counts)
{
	CHECK(shows(text__count, 0, "0"));
	CHECK(shows(text__count, 999, "999"));
	CHECK(shows(text__count, 1000, "1,000"));
	CHECK(shows(text__count, ~0ull, "18,446,744,073,709,551,615"));
}

TEST(doubles_read_back_the_same)
{
	static const double values[] = { 0, 0.1, 1.0 / 3, 1e300, 123456789.125, 5e-324 };
	char buf[TEXT_NUMBER];
	size_t i;

	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		CHECK(strtod(text__double(buf, sizeof(buf), values[i]), NULL) == values[i]);
	CHECK(!strcmp(text__double(buf, sizeof(buf), 0.1), "0.1"));
}

TEST_MAIN()
