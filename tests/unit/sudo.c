// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The user behind sudo, from the environment. */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#include "util/sudo.h"

static bool user(const char *uid, const char *gid, uid_t expected)
{
	uid_t u = 0;
	gid_t g = 0;

	setenv("SUDO_UID", uid, 1);
	setenv("SUDO_GID", gid, 1);
	return sudo__user(&u, &g) && u == expected && g == strtoul(gid, NULL, 10);
}

TEST(uids_of_users)
{
	if (geteuid())
		SKIP("the variables count for root alone");
	CHECK(user("1000", "1000", 1000));
	/* uids of directory services */
	CHECK(user("65534", "65534", 65534) && user("1734800500", "1734800513", 1734800500));
	CHECK(user("1000", "0", 1000));
	CHECK(!user("0", "0", 0));
	CHECK(!user("-1", "1", 0) && !user("4294967295", "1", 0) && !user("1000x", "1", 0) && !user("", "1", 0));
	CHECK(!user("1000", "", 0) && !user("99999999999999999999", "1", 0));
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

TEST_MAIN()
