// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Shell patterns as BPF programs match them, compared with fnmatch(3). */
#include "test.h"
#include "util/glob.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

static bool follow(const struct glob *g, const char *text)
{
	u64 state = GLOB_BEGIN;

	for (u32 at = 0; text[at]; at++)
		state = glob__step(g, state, text[at]);
	return glob__ends(g, state);
}

static const char *const patterns[] = { "python3", "python*",	  "*",	    "?",	 "*thon*",   "*n3",
					"p*n*3",   "[a-p]ython?", "[!p]*",  "[^p]*",	 "[]x]*",    "[ab",
					"a\\*b",   "\\?",	  "**a**",  "a-b",	 "[a-c-]*",  "*[0-9]",
					"[\\]]*",  "a*b*c*d",	  "a*a*a*", "*a*a*a*a*", "?????*",   "a?????????????",
					"[!a-y]",  "[]-a]*",	  "python", "*:*",	 "kworker*", "*?",
					"[*]",	   "[?]x*[y]" };
static const char *const names[] = { "",
				     "python3",
				     "python",
				     "python3.11",
				     "x",
				     "]x",
				     "[a-",
				     "a*b",
				     "a\\*b",
				     "?",
				     "a",
				     "aa",
				     "aaa",
				     "aaaa",
				     "aab",
				     "a-b",
				     "-",
				     "b9",
				     "9",
				     "abcd",
				     "aXbXcXd",
				     "aaaaaaaaaaaaaaa",
				     "z",
				     "*",
				     "?xxy",
				     "\xff\xfe",
				     "kworker/0:1H",
				     "sh",
				     "ython",
				     "a1234567890123",
				     "]",
				     "[",
				     "^",
				     "node:1",
				     "pythonpythonpyt" };

TEST(matches_like_fnmatch)
{
	struct glob g;

	for (u32 i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		CHECK(!glob__compile(&g, patterns[i], GLOB_STEPS));
		for (u32 j = 0; j < sizeof(names) / sizeof(names[0]); j++) {
			bool expected = !fnmatch(patterns[i], names[j], 0);

			if (follow(&g, names[j]) != expected)
				printf("# '%s' and '%s': fnmatch says %d\n", patterns[i], names[j], expected);
			CHECK(follow(&g, names[j]) == expected);
		}
	}
}

TEST(every_pattern_of_four_characters_matches_like_fnmatch)
{
	static const char alphabet[] = "ab*?", letters[] = "ab";
	char pattern[5] = "", name[5] = "";
	struct glob g;
	u32 wrong = 0;

	for (u32 i = 0; i < 256; i++) {
		for (u32 k = 0; k < 4; k++)
			pattern[k] = alphabet[(i >> (2 * k)) & 3];
		CHECK(!glob__compile(&g, pattern, GLOB_STEPS));
		for (u32 j = 0; j < 80; j++) {
			u32 len = j / 16;

			for (u32 k = 0; k < 4; k++)
				name[k] = k < len ? letters[(j >> k) & 1] : '\0';
			wrong += follow(&g, name) != !fnmatch(pattern, name, 0);
		}
	}
	CHECK(!wrong);
}

TEST(refuses_patterns_that_can_not_match)
{
	struct glob g;

	CHECK(glob__compile(&g, "fifteen--------", 15) == 0 && follow(&g, "fifteen--------"));
	CHECK(glob__compile(&g, "sixteen---------", 15) == -E2BIG);
	CHECK(glob__compile(&g, "***************************", 15) == 0);
}

TEST(matches_texts_of_63_characters)
{
	char text[GLOB_STEPS + 2] = "";
	struct glob g;

	memset(text, 'x', GLOB_STEPS);
	CHECK(!glob__compile(&g, text, GLOB_STEPS) && follow(&g, text));
	text[GLOB_STEPS - 1] = 'y';
	CHECK(!follow(&g, text));
	text[GLOB_STEPS] = 'z';
	CHECK(!follow(&g, text) && glob__compile(&g, text, GLOB_STEPS) == -E2BIG);
	CHECK(!glob__compile(&g, "", GLOB_STEPS) && follow(&g, "") && !follow(&g, "x"));
}

TEST_MAIN()
