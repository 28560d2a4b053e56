// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "test.h"
#include "util/map.h"

#include <stdio.h>
#include <xxhash.h>

TEST(keeps_its_entries)
{
	struct map m;
	u64 *value, *first, key;
	bool right = true;

	map__init(&m, sizeof(key), sizeof(*value));
	key = 7;
	CHECK(!map__find(&m, &key));
	first = map__get(&m, &key);
	REQUIRE(first);
	CHECK(*first == 0);
	*first = 70;
	for (key = 0; key < 100000; key++) {
		value = map__get(&m, &key);
		REQUIRE(value);
		*value = key * 10;
	}
	CHECK(m.n == 100000);
	for (key = 0; key < 100000; key++) {
		value = map__find(&m, &key);
		right &= value && *value == key * 10;
	}
	CHECK(right);
	/* addresses are stable, the order is that of insertion */
	key = 7;
	CHECK(map__find(&m, &key) == first && map__value(&m, 0) == first);
	CHECK(*(const u64 *)map__key(&m, 0) == 7 && *(const u64 *)map__key(&m, 1) == 0);
	key = 100000;
	CHECK(!map__find(&m, &key));
	map__free(&m);
	CHECK(m.n == 0 && !map__find(&m, &key));
}

/* The inverse of x ^ x >> n. */
static u64 undo_shift(u64 x, u32 n)
{
	u64 out = x;

	for (u32 done = n; done < 64; done += n)
		out = x ^ out >> n;
	return out;
}

/* The inverse of multiplication by an odd number, by Newton's method. */
static u64 inverse(u64 n)
{
	u64 out = n;

	for (u32 i = 0; i < 6; i++)
		out *= 2 - n * out;
	return out;
}

/* The key that the table's hash, the finalizer of splitmix64, would map to this value without a seed. */
static u64 key_of(u64 hash)
{
	u64 x = undo_shift(hash, 31) * inverse(0x94d049bb133111ebull);

	x = undo_shift(x, 27) * inverse(0xbf58476d1ce4e5b9ull);
	return undo_shift(x, 30);
}

static u32 longest_run(const struct map *m)
{
	u32 run = 0, longest = 0;

	for (u32 i = 0; i < m->n_slots; i++) {
		run = m->slots[i].entry ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

/* A target can choose addresses and ids: keys that would share one slot without a seed are spread like others. */
TEST(chosen_keys_do_not_collide)
{
	struct map m;
	u64 key;

	map__init(&m, sizeof(key), sizeof(u64));
	for (u64 i = 0; i < 20000; i++) {
		key = key_of(i << 32);
		REQUIRE(map__get(&m, &key));
	}
	if (!CHECK(longest_run(&m) < 1000))
		printf("# %u slots in a row are taken\n", longest_run(&m));
	map__free(&m);
	CHECK(map__hash_bytes("text", 4) != XXH3_64bits("text", 4));
}

TEST(odd_key_sizes)
{
	struct map m;
	u8 key[3] = { 1, 2, 3 };
	u64 *value;

	map__init(&m, sizeof(key), sizeof(*value));
	value = map__get(&m, key);
	REQUIRE(value);
	*value = ~0ull;
	key[2] = 4;
	CHECK(!map__find(&m, key));
	key[2] = 3;
	CHECK(map__find(&m, key) == value && *value == ~0ull);
	map__free(&m);
}

TEST_MAIN()
