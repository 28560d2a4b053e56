// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Floating-point numbers that no integer holds, by themselves and as fields of a trace. */
#include "util/saturate.h"

#include "test.h"
#include "trace_support.h"
#include "model/view.h"

TEST(converts_to_the_nearest_integer_of_the_type)
{
	CHECK(saturate__u64(0) == 0 && saturate__u64(1.9) == 1 && saturate__u64(0x1p63) == 1ULL << 63);
	CHECK(saturate__u64(-0.5) == 0 && saturate__u64(-1e300) == 0 && saturate__u64(-INFINITY) == 0);
	CHECK(saturate__u64(0x1p64) == ULLONG_MAX && saturate__u64(1e300) == ULLONG_MAX);
	CHECK(saturate__u64(INFINITY) == ULLONG_MAX && saturate__u64((double)ULLONG_MAX) == ULLONG_MAX);
	CHECK(saturate__u64(NAN) == 0);

	CHECK(saturate__s64(-1.9) == -1 && saturate__s64(1.9) == 1 && saturate__s64(-0x1p63) == LLONG_MIN);
	CHECK(saturate__s64(0x1p63) == LLONG_MAX && saturate__s64(INFINITY) == LLONG_MAX);
	CHECK(saturate__s64(-0x1.0000000000001p63) == LLONG_MIN && saturate__s64(-INFINITY) == LLONG_MIN);
	CHECK(saturate__s64(NAN) == 0);

	CHECK(saturate__round(2.5) == 3 && saturate__round(2.4) == 2 && saturate__round(-3) == 0);
	CHECK(saturate__round((double)ULLONG_MAX) == ULLONG_MAX && saturate__round(NAN) == 0);
}

/* Records read one by one, as the exports in order of time do */
TEST(fields_of_records)
{
	static const struct {
		double value;
		s64 as_integer;
	} cases[] = { { 2.75, 2 }, { INFINITY, LLONG_MAX }, { -1e19, LLONG_MIN }, { NAN, 0 } };
	struct schema *s = support_schema();

	REQUIRE(s);
	for (u32 i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct every record = support_every_at(1);
		struct view v;

		record.ratio = cases[i].value;
		REQUIRE(view__of_record(&v, s, &record, sizeof(record)));
		CHECK(view__get(&v, "ratio") == cases[i].as_integer);
	}
	schema__free(s);
}

TEST_MAIN()
