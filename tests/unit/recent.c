// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tables with removal: a hash table, and a table that evicts unused entries. */
#include "record/stacks/line_tables.h"
#include "util/recent.h"

#include "test.h"

/* Random additions and removals, compared with an array of flags by looking up every key. */
TEST(removes_entries)
{
	enum { KEYS = 4096 };
	static bool there[KEYS];
	u32 n = 0, state = 1;
	struct map m;

	map__init(&m, sizeof(u32), sizeof(u32));
	for (u32 i = 0; i < 200000; i++) {
		u32 key = (state = state * 1103515245 + 12345) >> 8 & (KEYS - 1);

		if (state >> 30 & 1) {
			u32 *value = map__get(&m, &key);

			REQUIRE(value && (!there[key] || *value == key + 1));
			*value = key + 1;
			n += !there[key];
			there[key] = true;
		} else {
			map__remove(&m, &key);
			n -= there[key];
			there[key] = false;
		}
	}
	CHECK(m.n == n && n > KEYS / 4);
	for (u32 key = 0; key < KEYS; key++) {
		u32 *value = map__find(&m, &key);

		CHECK(there[key] ? value && *value == key + 1 : !value);
	}
	for (u32 i = 0; i < m.n; i++)
		CHECK(*(u32 *)map__value(&m, i) == *(const u32 *)map__key(&m, i) + 1);
	while (m.n)
		map__remove(&m, &(u32){ *(const u32 *)map__key(&m, 0) });
	CHECK(!map__find(&m, &(u32){ 1 }));
	map__free(&m);
}

TEST(evicts_unused_entries)
{
	u32 often = 1000000;
	struct recent c;

	recent__init(&c, sizeof(u32), sizeof(u32), 100);
	*(u32 *)recent__get(&c, &often) = 7;
	for (u32 i = 0; i < 5000; i++) {
		u32 *value = recent__get(&c, &i);

		REQUIRE(value && !*value);
		*value = i + 1;
		CHECK(recent__entries(&c) <= 200 && c.young.n + c.old.n <= 200);
		if (i % 50 == 0) {
			value = recent__find(&c, &often);
			CHECK(value && *value == 7);
		}
		value = recent__find(&c, &i);
		CHECK(value && *value == i + 1);
	}
	CHECK(!recent__find(&c, &(u32){ 0 }));
	CHECK(recent__entries(&c) + c.evicted == 5001);
	CHECK(recent__bytes(&c) < 200 * 64 + 3 * 512 * 8);
	recent__clear(&c);
	CHECK(!recent__find(&c, &often) && !recent__entries(&c) && c.evicted == 5001);
	CHECK(recent__get(&c, &often));
	recent__free(&c);
}

static void count_release(void *value)
{
	(*(u32 **)value)[0]++;
}

TEST(releases_evicted_entries_once)
{
	u32 released = 0;
	struct recent c;

	recent__init(&c, sizeof(u32), sizeof(u32 *), 100);
	c.release = count_release;
	for (u32 i = 0; i < 1000; i++) {
		*(u32 **)recent__get(&c, &i) = &released;
		/* a lookup moves the entry to the young generation, which is evicted later */
		recent__find(&c, &(u32){ i > 90 ? i - 90 : 0 });
		CHECK(released == c.evicted && recent__entries(&c) + released == i + 1);
		CHECK(recent__peek(&c, &i));
	}
	recent__free(&c);
	CHECK(released == 1000);
}

TEST(equal_line_tables_are_stored_once)
{
	struct line_table *some[3];
	struct line_tables t;
	u64 one;

	line_tables__init(&t);
	some[0] = line_tables__take(&t, (const u8 *)"abc", 3);
	one = t.bytes;
	some[1] = line_tables__take(&t, (const u8 *)"abc", 3);
	CHECK(some[0] == some[1] && t.bytes == one);
	some[2] = line_tables__take(&t, NULL, 0);
	REQUIRE(some[2] && some[2] != some[0] && !some[2]->size);
	/* keys chosen to have the same hash */
	some[2]->hash = some[0]->hash;
	line_tables__put(&t, some[2]);
	line_tables__put(&t, some[1]);
	CHECK(t.bytes == one && line_tables__take(&t, (const u8 *)"abc", 3) == some[0]);
	line_tables__put(&t, some[0]);
	line_tables__put(&t, some[0]);
	line_tables__put(&t, NULL);
	CHECK(!t.bytes);
	line_tables__free(&t);
}

TEST_MAIN()
