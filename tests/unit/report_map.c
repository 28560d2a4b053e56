// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "test.h"
#include "util/map.h"

TEST(keeps_what_is_put_in)
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
	/* addresses stay, order is that of adding */
	key = 7;
	CHECK(map__find(&m, &key) == first && map__value(&m, 0) == first);
	CHECK(*(const u64 *)map__key(&m, 0) == 7 && *(const u64 *)map__key(&m, 1) == 0);
	key = 100000;
	CHECK(!map__find(&m, &key));
	map__free(&m);
	CHECK(m.n == 0 && !map__find(&m, &key));
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
