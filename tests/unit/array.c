// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Arrays that grow. */
#include "test.h"
#include "util/array.h"

TEST(grows_and_keeps_its_elements)
{
	u32 *list = NULL, n = 0, wrong = 0;

	for (u32 i = 0; i < 1000; i++)
		if (!array__push(list, n, i * 3))
			break;
	REQUIRE(n == 1000);
	for (u32 i = 0; i < n; i++)
		wrong += list[i] != i * 3;
	CHECK(!wrong);
	CHECK(array__bytes(list, n) == 1024 * sizeof(u32));
	free(list);
}

/* ASan detects a buffer that is too small for the next elements. */
TEST(loses_elements_and_grows_again)
{
	u64 *list = NULL;
	size_t n = 0;

	for (u32 to = 1; to < 70; to++) {
		while (n < to)
			REQUIRE(array__push(list, n, to));
		n = to / 3;
	}
	for (n = 0; n < 20; n++)
		REQUIRE(array__room(list, n));
	free(list);
}

TEST(capacities)
{
	CHECK(array__capacity(0) == 0 && array__capacity(1) == 4 && array__capacity(4) == 4 && array__capacity(5) == 8);
}

TEST_MAIN()
