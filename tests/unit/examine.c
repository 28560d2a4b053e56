// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a child that parses a file may answer when the file has taken it over: nothing of it is believed unchecked. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/objects.h"
#include "test.h"

#define FILE_SIZE 65536

static const struct schema_family families[] = { { .id = 3, .name = "three" }, { .id = 4, .name = "four" } };
static struct program programs[] = {
	{ .name = "three_call",
	  .section = { .kind = SECTION_SPAN, .library = "libthree.so" },
	  .family = &families[0],
	  .enabled = true },
	{ .name = "four_site", .section = { .kind = SECTION_SITE }, .family = &families[1], .enabled = true },
	{ .name = "three_off", .section = { .kind = SECTION_SPAN }, .family = &families[0] },
};
static struct session session = {
	.embedded.probes = { .programs = programs, .n_programs = 3 },
	.family_on = { [3] = true, [4] = true },
};
static struct object object = { .path = "/some/file" };
static struct examination x;
static struct answer answer;

static int take(u32 kind, u32 n, size_t len)
{
	answer.head = (struct answer_head){ .kind = kind, .n = n };
	return examination__take(&x, &session, &object, &answer, ANSWER_HEAD + len, FILE_SIZE);
}

static int take_name(const char *name, size_t len)
{
	memcpy(answer.text, name, len);
	return take(ANSWER_NAME, 0, len);
}

static int take_place(struct found_place place)
{
	answer.places[0] = place;
	return take(ANSWER_PLACES, 1, sizeof(place));
}

static int take_family(struct found_family family)
{
	answer.family = family;
	return take(ANSWER_FAMILY, 0, sizeof(family));
}

static void begin(void)
{
	examination__free(&x);
	memset(&x, 0, sizeof(x));
}

TEST(an_honest_answer_is_taken)
{
	begin();
	CHECK(!take_name("call", 5));
	CHECK(!take_place((struct found_place){ .program = 0, .name = 0, .offset = 64 }));
	CHECK(!take_family((struct found_family){ .id = 3 }));
	CHECK(!take_place((struct found_place){ .program = 1, .name = PLACE_NO_NAME, .offset = 8, .counter = 16 }));
	CHECK(!take_family((struct found_family){ .id = 4, .why = "not all\n" }));
	answer.end = (struct found_end){ .result = 0 };
	CHECK(take(ANSWER_END, 0, sizeof(answer.end)) == 1);
	CHECK(x.n_families == 2 && x.families[0].n == 1 && x.families[1].first == 1 && x.families[1].n == 1);
	CHECK(!strcmp(x.families[1].found.why, "not all?"));
}

TEST(places_are_in_the_file_and_of_the_family)
{
	begin();
	CHECK(take_place((struct found_place){ .program = 0, .name = 0, .offset = 64 }) == -EPROTO);
	CHECK(!take_name("call", 5));
	CHECK(take_place((struct found_place){ .program = 0, .name = 1, .offset = 64 }) == -EPROTO);
	CHECK(take_place((struct found_place){ .program = 0, .name = 0, .offset = FILE_SIZE }) == -EPROTO);
	CHECK(take_place((struct found_place){ .program = 0, .name = 0, .offset = 64, .counter = 64 }) == -EPROTO);
	CHECK(take_place((struct found_place){ .program = 2, .name = 0, .offset = 64 }) == -EPROTO);
	CHECK(take_place((struct found_place){ .program = 3, .name = 0, .offset = 64 }) == -EPROTO);
	CHECK(take_place((struct found_place){ .program = 1, .name = 0, .offset = 64 }) == -EPROTO);
	CHECK(!x.n_places);
	CHECK(!take_place((struct found_place){ .program = 0, .name = 0, .offset = 64 }));
	CHECK(take_family((struct found_family){ .id = 4 }) == -EPROTO);
}

TEST(families_are_asked_for_and_come_once)
{
	struct found_family endless = { .id = 3 };

	begin();
	memset(endless.why, 'x', sizeof(endless.why));
	CHECK(take_family(endless) == -EPROTO);
	CHECK(take_family((struct found_family){ .id = 5 }) == -EPROTO);
	CHECK(take_family((struct found_family){ .id = 70000 }) == -EPROTO);
	CHECK(take_family((struct found_family){ .id = 3, .error = 1 }) == -EPROTO);
	CHECK(!take_family((struct found_family){ .id = 3 }));
	CHECK(take_family((struct found_family){ .id = 3 }) == -EPROTO);
	object.families = FAMILY_BIT(4);
	CHECK(take_family((struct found_family){ .id = 4 }) == -EPROTO);
	object.families = 0;
}

TEST(lengths_and_counts_agree)
{
	begin();
	CHECK(take_name("call", 4) == -EPROTO);
	CHECK(take_name("", 1) == -EPROTO);
	CHECK(take(ANSWER_PLACES, 0, 0) == -EPROTO);
	CHECK(take(ANSWER_PLACES, PLACES_BATCH + 1, sizeof(struct found_place)) == -EPROTO);
	CHECK(take(ANSWER_PLACES, 2, sizeof(struct found_place)) == -EPROTO);
	CHECK(take(ANSWER_FACTS, 0, sizeof(struct file_facts) - 1) == -EPROTO);
	CHECK(take(ANSWER_END, 0, 1) == -EPROTO);
	CHECK(examination__take(&x, &session, &object, &answer, ANSWER_HEAD - 1, FILE_SIZE) == -EPROTO);
	memset(&answer.facts, 0, sizeof(answer.facts));
	answer.facts.n_segments = FILE_SEGMENTS_MAX + 1;
	CHECK(take(ANSWER_FACTS, 0, sizeof(answer.facts)) == -EPROTO);
	answer.facts.n_segments = 0;
	strcpy(answer.facts.build_id, "../../etc");
	CHECK(take(ANSWER_FACTS, 0, sizeof(answer.facts)) == -EPROTO);
	CHECK(take(ANSWER_SYMBOL + 100, 0, 0) == -EPROTO);
}

/* Whatever comes, there is an answer, and no more is kept than a file may have. */
TEST(noise)
{
	srand(1);
	for (u32 round = 0; round < 20; round++) {
		begin();
		for (u32 i = 0; i < 2000; i++) {
			size_t len = (size_t)rand() % (sizeof(answer) - ANSWER_HEAD);
			u32 kind = (u32)rand() % (ANSWER_END + 2);
			int err;

			for (size_t k = 0; k < len; k += 1 + (size_t)rand() % 64)
				((char *)&answer)[ANSWER_HEAD + k] = (char)(rand() % 4 ? 0 : rand());
			err = take(kind, (u32)rand() % 4, kind == ANSWER_PLACES ? sizeof(struct found_place) * 2 : len);
			CHECK(err <= 1);
		}
		CHECK(x.n_places <= FILE_PLACES_MAX && x.n_names <= FILE_NAMES_MAX);
	}
	examination__free(&x);
	for (u32 i = 0; i < session.n_warnings; i++)
		free(session.warnings[i]);
}

TEST_MAIN()
