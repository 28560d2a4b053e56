// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reading Python's data: line tables of all versions, debug offsets, texts. */
#include "python/layouts.h"
#include "python/lines.h"
#include "python/text.h"
#include "test.h"

#include <errno.h>

struct range {
	u32 start, end, line; /* offsets in bytes; line 0: none */
};

static const struct table {
	u16 version;
	u32 first_line;
	u32 size;
	const u8 *bytes;
	u32 n;
	const struct range *ranges;
} tables[] = {
#include "python_tables.h"
};

#define TABLES (sizeof(tables) / sizeof(tables[0]))

TEST(lines_are_those_of_python)
{
	u32 versions[16] = {}, bad = 0;

	for (u32 i = 0; i < TABLES; i++) {
		const struct table *t = &tables[i];

		for (u32 k = 0; k < t->n; k++) {
			const struct range *r = &t->ranges[k];

			for (u32 at = r->start; at < r->end; at += 2) {
				u32 line = python__line(t->version, t->bytes, t->size, t->first_line, at);

				versions[t->version & 15]++;
				if (line != r->line && bad++ < 5)
					printf("# %04x, table of line %u, offset %u: line %u, not %u\n", t->version,
					       t->first_line, at, line, r->line);
			}
		}
	}
	CHECK(!bad);
	for (u32 v = 8; v < 16; v++)
		CHECK(versions[v] > 100);
}

TEST(a_frame_that_has_not_begun_is_at_the_first_line)
{
	for (u32 i = 0; i < TABLES; i++)
		CHECK(python__line(tables[i].version, tables[i].bytes, tables[i].size, 42, -1) == 42);
}

TEST(an_empty_table_is_the_first_line_up_to_3_9_and_none_later)
{
	CHECK(python__line(0x0308, NULL, 0, 7, 100) == 7);
	CHECK(python__line(0x0309, NULL, 0, 7, 100) == 7);
	CHECK(!python__line(0x030a, NULL, 0, 7, 100));
	CHECK(!python__line(0x030b, NULL, 0, 7, 100));
}

/* With each byte of each table changed, and with each length: results are wrong, but no read is out of bounds. */
TEST(hostile_tables_are_bounded)
{
	static const s64 offsets[] = { 0, 2, 1000, 1LL << 40 };
	u8 *copy;

	for (u32 i = 0; i < TABLES; i++) {
		const struct table *t = &tables[i];

		for (u32 at = 0; at <= t->size; at++) {
			/* of exactly this size, so that the sanitizer detects reads beyond it */
			copy = malloc(at + 1);
			memcpy(copy, t->bytes, at);
			copy[at] = 0xff;
			for (u32 k = 0; k < sizeof(offsets) / sizeof(offsets[0]); k++) {
				python__line(t->version, copy, at, 1, offsets[k]);
				python__line(t->version, copy, at + 1, 0xffffffff, offsets[k]);
			}
			free(copy);
		}
	}
}

/* _Py_DebugOffsets of pyenv's 3.13.0 and Debian's 3.14.10 and 3.15.2, from the cookie on */
static const u64 words_313[PYTHON_OFFSET_WORDS] = {
	0,    0x30d00f0, 0,    283320, 608, 632, 194968, 7272, 7264, 7344, 7400, 7656, 7640, 7648, 16,
	7752, 0,	 7768, 7760,   304, 0,	 8,	 16,   72,   152,  160,	 232,  32,   80,   8,
	0,    56,	 72,   70,     208, 112, 120,	 128,  136,  68,   52,	 96,   104,  200,  16,
	8,    416,	 24,   88,     168, 32,	 24,	 16,   40,   24,   16,	 48,   32,   40,   24,
	16,   32,	 16,   24,     40,  16,	 32,	 64,   32,   16,   40,	 240,  200,
};
static const u64 words_314[PYTHON_OFFSET_WORDS] = {
	0,    0x30e0af0, 0,    316616, 784,  808, 225864, 7280, 7272, 7344, 7360, 7408, 7688, 7672, 7680, 16,
	7784, 0,	 7800, 7792,   7992, 0,	  832,	  0,	8,    16,   72,	  152,	160,  232,  32,	  88,
	8,    0,	 56,   80,     74,   64,  0,	  216,	112,  120,  128,  136,	68,   52,   96,	  104,
	208,  0,	 16,   8,      416,  24,  88,	  168,	40,   32,   16,	  40,	24,   16,   200,  24,
	40,   32,	 48,   32,     40,   24,  16,	  32,	16,   24,   40,	  16,	32,   64,   32,	  16,
	40,   264,	 192,  160,    24,   72,  67,	  0,	8,    24,   304,  8076, 0,
};
static const u64 words_315[PYTHON_OFFSET_WORDS] = {
	0,    0x30f02f0, 0,    346568, 912,  936, 226240, 7272, 7264, 7336, 7352, 7400, 7592, 7576, 7584, 16,
	7736, 0,	 7752, 7744,   7944, 0,	  888,	  0,	8,    16,   72,	  80,	88,   96,   176,  184,
	256,  32,	 36,   40,     136,  288, 0,	  88,	8,    0,    56,	  80,	74,   64,   0,	  216,
	112,  120,	 128,  136,    68,   52,  96,	  104,	208,  0,    16,	  8,	424,  24,   88,	  168,
	32,   288,	 944,  888,    40,   32,  16,	  40,	24,   16,   200,  24,	40,   32,   48,	  32,
	40,   24,	 16,   32,     16,   24,  40,	  16,	32,   64,   32,	  16,	40,
};

static int parse(const u64 *from, struct python_layout *l, u32 n, u32 at, u64 value)
{
	u64 words[PYTHON_OFFSET_WORDS];
	char why[160];

	memcpy(words, from, sizeof(words));
	memcpy(words, "xdebugpy", 8);
	if (at)
		words[at] = value;
	return python__layout_of_offsets(words, n, l, why, sizeof(why));
}

TEST(debug_offsets)
{
	struct python_layout l;

	/* by offsetof() with the headers of 3.13 */
	REQUIRE(!parse(words_313, &l, PYTHON_OFFSET_WORDS, 0, 0));
	CHECK(l.version == 0x030d && l.interpreters == 632 && l.interp_next == 7264 && l.interp_threads == 7344);
	CHECK(l.interp_gil == 16 && l.state_next == 8 && l.state_thread_id == 152 && l.state_frame == 72);
	CHECK(l.state_status == 32 && l.frame_code == 0 && l.frame_previous == 8 && l.frame_instr == 56);
	CHECK(l.frame_owner == 70 && l.frame_size == 72 && l.code_name == 128 && l.code_file == 112);
	CHECK(l.code_line == 68 && l.code_lines == 136 && l.code_start == 200 && l.code_traceable == 184);
	CHECK(l.code_version == 92 && l.code_check == 48 && l.str_ascii == 40 && l.str_compact == 56);
	CHECK(l.bytes_data == 32 && !l.by_cframe && !l.instr_unit);
	REQUIRE(!parse(words_314, &l, PYTHON_OFFSET_WORDS, 0, 0));
	CHECK(l.version == 0x030e && l.interpreters == 808 && l.state_thread_id == 152 && l.frame_owner == 74);
	CHECK(l.frame_size == 80 && l.code_start == 208 && l.code_traceable == 192 && l.code_name == 128);
	REQUIRE(!parse(words_315, &l, PYTHON_OFFSET_WORDS, 0, 0));
	CHECK(l.version == 0x030f && l.interpreters == 936 && l.state_thread_id == 176 && l.frame_owner == 74);
	CHECK(l.state_status == 32 && l.code_start == 208 && l.code_line == 68 && l.code_lines == 136);
}

TEST(unknown_and_invalid_debug_offsets_are_refused)
{
	struct python_layout l;
	char why[160];

	CHECK(parse(words_313, &l, 70, 0, 0) == -ENOTSUP);
	CHECK(parse(words_313, &l, PYTHON_OFFSET_WORDS, 2, 1) == -ENOTSUP); /* free-threaded */
	CHECK(parse(words_313, &l, PYTHON_OFFSET_WORDS, 1, 0x31000f0) == -ENOTSUP); /* 3.16 */
	CHECK(parse(words_313, &l, PYTHON_OFFSET_WORDS, 1, 0x30c00f0) == -ENOTSUP);
	CHECK(parse(words_313, &l, PYTHON_OFFSET_WORDS, 1, 0x40d00f0) == -ENOTSUP);
	/* one version's data read as the other's */
	CHECK(parse(words_313, &l, PYTHON_OFFSET_WORDS, 1, 0x30e00f0) == -ENOTSUP);
	CHECK(parse(words_315, &l, PYTHON_OFFSET_WORDS, 1, 0x30e00f0) == -ENOTSUP);
	CHECK(parse(words_313, &l, PYTHON_OFFSET_WORDS, 37, 1 << 20) == -ENOTSUP);
	CHECK(parse(words_313, &l, PYTHON_OFFSET_WORDS, 28, ~0ULL) == -ENOTSUP);
	CHECK(parse(words_313, &l, PYTHON_OFFSET_WORDS, 33, ~0ULL) == -ENOTSUP);
	CHECK(python__layout_of_offsets(words_313, PYTHON_OFFSET_WORDS, &l, why, sizeof(why)) == -ENOTSUP);
	CHECK_TEXT(why, "it has no _Py_DebugOffsets at the start of _PyRuntime");
}

static void check_text(const void *chars, size_t size, u32 width, const char *want)
{
	char *got = python__utf8(chars, size, width);

	CHECK_TEXT(got, want);
	free(got);
}

TEST(texts)
{
	check_text("abc", 3, 1, "abc");
	check_text("gr\xf6\xdf"
		   "e",
		   5, 1,
		   "gr\xc3\xb6\xc3\x9f"
		   "e");
	check_text((u16[]){ 0x438, 0x20ac, 'x' }, 6, 2,
		   "\xd0\xb8\xe2\x82\xac"
		   "x");
	check_text((u32[]){ 0x10348, 'y' }, 8, 4, "\xf0\x90\x8d\x88y");
	/* control characters, undecoded bytes, half surrogate pairs, values beyond Unicode, a partial character */
	check_text("a\nb\x1b[2J\x9b\x7f", 9, 1, "a?b?[2J??");
	check_text((u16[]){ 0xdc80, 0xdcff, 'a' }, 6, 2, "\\x80\\xffa");
	check_text((u16[]){ 0xdd00, 0xd800, 'a' }, 6, 2, "??a");
	check_text((u32[]){ 0xffffffff, 'a' }, 8, 4, "?a");
	check_text((u32[]){ 'a', 'b' }, 7, 4, "a");
	check_text("", 0, 1, "");
	CHECK(!python__utf8((const u8 *)"abc", 3, 3));
}

TEST_MAIN()
