// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* --comm's patterns, matched by the algorithm of the BPF program, compared with fnmatch(3). */
#include "record/select/comm_glob.h"
#include "test.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

/* bpf/core/filter.bpf.c, comm__is_selected */
static bool follow(const struct comm_glob *g, const char *comm)
{
	u32 state = 1;

	for (u32 at = 0; at < 16 && comm[at]; at++) {
		u8 c = comm[at];

		state = (state & g->accept[c]) << 1 | (state & g->loops);
	}
	return state & g->end;
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
	struct comm_glob g;

	for (u32 i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		CHECK(!comm_glob__compile(&g, patterns[i]));
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
	struct comm_glob g;
	u32 wrong = 0;

	for (u32 i = 0; i < 256; i++) {
		for (u32 k = 0; k < 4; k++)
			pattern[k] = alphabet[(i >> (2 * k)) & 3];
		CHECK(!comm_glob__compile(&g, pattern));
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
	struct comm_glob g;

	CHECK(comm_glob__compile(&g, "") == -EINVAL);
	CHECK(comm_glob__compile(&g, "fifteen--------") == 0 && follow(&g, "fifteen--------"));
	CHECK(comm_glob__compile(&g, "sixteen---------") == -E2BIG);
	CHECK(comm_glob__compile(&g, "***************************") == 0);
}

TEST_MAIN()
