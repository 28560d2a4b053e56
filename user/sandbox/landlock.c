// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sandbox/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/types.h"

/* Rights by the version of Landlock that has them; linux/landlock.h of Debian 12 lacks the last two. */
#define RIGHTS_1	((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)
#define RIGHTS_TRUNCATE (1ULL << 14) /* version 3 */
#define RIGHTS_IOCTL	(1ULL << 15) /* version 5 */

#define RIGHTS_READ  (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define RIGHTS_WRITE (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | RIGHTS_IOCTL)

/* A path that does not exist is skipped. */
static int allow(int rules, const char *path, u64 rights)
{
	struct landlock_path_beneath_attr rule = { .parent_fd = open(path, O_PATH | O_CLOEXEC) };
	struct stat st;
	int err = 0;

	if (rule.parent_fd < 0)
		return 0;
	/* a file that is not a folder has no right of folders */
	if (!fstat(rule.parent_fd, &st) && !S_ISDIR(st.st_mode))
		rights &= ~(u64)LANDLOCK_ACCESS_FS_READ_DIR;
	rule.allowed_access = rights;
	if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0))
		err = -errno;
	close(rule.parent_fd);
	return err;
}

static int allow_matching(int rules, const char *pattern, u64 rights)
{
	int err = 0;
	glob_t g = {};

	if (!glob(pattern, GLOB_NOSORT, NULL, &g))
		for (size_t i = 0; i < g.gl_pathc && !err; i++)
			err = allow(rules, g.gl_pathv[i], rights);
	globfree(&g);
	return err;
}

int landlock__restrict(const char *const *read, const char *const *write)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct landlock_ruleset_attr attr = { .handled_access_fs = RIGHTS_1 };
	int rules, err = 0;

	if (version < 0)
		return -errno;
	if (version >= 2)
		attr.handled_access_fs |= LANDLOCK_ACCESS_FS_REFER;
	if (version >= 3)
		attr.handled_access_fs |= RIGHTS_TRUNCATE;
	if (version >= 5)
		attr.handled_access_fs |= RIGHTS_IOCTL;
	rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr.handled_access_fs), 0);
	if (rules < 0)
		return -errno;
	for (; *read && !err; read++)
		err = allow(rules, *read, RIGHTS_READ);
	for (; *write && !err; write++)
		err = allow_matching(rules, *write, RIGHTS_WRITE & attr.handled_access_fs);
	if (!err && syscall(SYS_landlock_restrict_self, rules, 0))
		err = -errno;
	close(rules);
	return err;
}
