// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/sudo.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <unistd.h>

/* Any number may be a user, as directory services use numbers above 65534; only the last one means "none". */
static bool parse(const char *text, unsigned int *id)
{
	unsigned long value;
	char *end;

	if (!text || !isdigit((unsigned char)*text))
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || value >= 0xffffffffUL)
		return false;
	*id = (unsigned int)value;
	return true;
}

bool sudo__user(uid_t *uid, gid_t *gid)
{
	return !geteuid() && parse(secure_getenv("SUDO_UID"), uid) && parse(secure_getenv("SUDO_GID"), gid) && *uid;
}

/* Changes the process's groups to the user's; a user without an entry has only this one. */
static int use_groups(uid_t uid, gid_t gid)
{
	struct passwd entry, *user = NULL;
	char text[4096];

	if (getpwuid_r(uid, &entry, text, sizeof(text), &user))
		user = NULL;
	return (user ? initgroups(user->pw_name, gid) : setgroups(1, &gid)) ? -errno : 0;
}

int sudo__use_files_of_user(void)
{
	uid_t uid;
	gid_t gid;
	int err;

	if (!sudo__user(&uid, &gid))
		return 0;
	err = use_groups(uid, gid);
	/* the kernel also takes the capabilities to pass over the rights of files, as long as the id is not 0 */
	setfsgid(gid);
	setfsuid(uid);
	/* these calls return what the id was, and no error */
	if (!err && ((gid_t)setfsgid((gid_t)-1) != gid || (uid_t)setfsuid((uid_t)-1) != uid))
		err = -EINVAL;
	return err == -EINVAL || err == -EPERM ? 0 : err;
}
