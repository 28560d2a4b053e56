/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unit tests: each tests/unit/NAME.c is a program of cases,
 *
 *	TEST(reads_what_was_written)
 *	{
 *		CHECK(x == 1);		on failure the case continues
 *		REQUIRE(y);		on failure the case ends
 *		SKIP("no tmpfs here");	the case ends as skipped, unless it failed
 *	}
 *	TEST_MAIN()
 *
 * It prints TAP lines and exits with 1 if a case failed. An argument selects one case by name.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test_case {
	const char *name;
	void (*run)(void);
	struct test_case *next;
};

static struct test_case *test_cases, **test_last = &test_cases;
static bool test_failed;
static const char *test_skipped;

#define TEST(id)                                                           \
	static void test_##id(void);                                       \
	static struct test_case test_case_##id = { #id, test_##id, NULL }; \
	__attribute__((constructor)) static void test_add_##id(void)       \
	{                                                                  \
		*test_last = &test_case_##id;                              \
		test_last = &test_case_##id.next;                          \
	}                                                                  \
	static void test_##id(void)

#define CHECK(...)                                                                 \
	({                                                                         \
		bool passed_ = (__VA_ARGS__);                                      \
                                                                                   \
		if (!passed_) {                                                    \
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #__VA_ARGS__); \
			test_failed = true;                                        \
		}                                                                  \
		passed_;                                                           \
	})

#define REQUIRE(...)                     \
	do {                             \
		if (!CHECK(__VA_ARGS__)) \
			return;          \
	} while (0)

#define CHECK_TEXT(got, want)                                                              \
	do {                                                                               \
		const char *got_ = (got), *want_ = (want);                                 \
                                                                                           \
		if (!CHECK(got_ && !strcmp(got_, want_)))                                  \
			printf("#   got '%s', not '%s'\n", got_ ? got_ : "(null)", want_); \
	} while (0)

#define SKIP(why)                     \
	do {                          \
		test_skipped = (why); \
		return;               \
	} while (0)

#define TEST_MAIN()                                                                                 \
	int main(int argc, char **argv)                                                             \
	{                                                                                           \
		int n = 0, bad = 0;                                                                 \
		struct test_case *t;                                                                \
                                                                                                    \
		for (t = test_cases; t; t = t->next) {                                              \
			if (argc > 1 && strcmp(argv[1], t->name))                                   \
				continue;                                                           \
			test_failed = false;                                                        \
			test_skipped = NULL;                                                        \
			t->run();                                                                   \
			bad += test_failed;                                                         \
			printf("%sok %d - %s", test_failed ? "not " : "", ++n, t->name);            \
			printf(test_skipped && !test_failed ? " # SKIP %s\n" : "\n", test_skipped); \
			fflush(stdout);                                                             \
		}                                                                                   \
		printf("1..%d\n", n);                                                               \
		return bad || !n;                                                                   \
	}
