// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Budgets of users: the maximum debt, and the state stored for many users. */
#include "record/discover/shares.h"

#include "record/parts.h"
#include "test.h"

#define S	     1000000000LL
#define EXAMINATIONS 10 /* examinations per user with fixed shares */

static struct session session;

static void begin(const char *word)
{
	setenv("SONDE_TEST", word, 1);
	session.shares = shares__new();
}

static void end(void)
{
	shares__free(session.shares);
	session.shares = NULL;
}

static bool examine(u32 uid)
{
	bool may = shares__may(&session, uid, uid + 1, 1, false);

	if (may)
		shares__examined(session.shares);
	return may;
}

TEST(the_debt_of_users_is_limited)
{
	begin("");
	REQUIRE(session.shares);
	CHECK(shares__left(&session, 5) == 5 * S);
	shares__charge(&session, 5, 3600 * S);
	CHECK(shares__left(&session, 5) >= -15 * S && shares__left(&session, 5) < 0);
	shares__charge(&session, 6, 3600 * S);
	shares__charge(&session, 7, ~0ULL);
	CHECK(shares__left(&session, 8) >= -15 * S && shares__left(&session, 8) < 0);
	CHECK(shares__left(&session, 0) > 0);
	end();
	/* the user's own budget */
	begin("");
	shares__charge(&session, 5, 14 * S);
	CHECK(shares__left(&session, 5) >= -5 * S && shares__left(&session, 5) < 0);
	CHECK(shares__left(&session, 6) > 0);
	end();
}

/* Users with processes to be scanned again stay in the table; further users share one budget. */
TEST(many_users)
{
	u32 again = 0, n = 0;

	begin("fixed-shares");
	REQUIRE(session.shares);
	for (u32 uid = 1; uid < 64; uid++) {
		for (u32 i = 0; i < EXAMINATIONS; i++)
			n += examine(uid);
		CHECK(!examine(uid));
	}
	CHECK(n == 63 * EXAMINATIONS);
	for (n = 0; n < EXAMINATIONS; n++)
		CHECK(examine(1000 + n));
	CHECK(!examine(1000) && !examine(2000));
	for (u32 uid = 1; uid < 64; uid++)
		again += examine(uid);
	CHECK(!again);
	CHECK(examine(0));
	end();
}

TEST_MAIN()
