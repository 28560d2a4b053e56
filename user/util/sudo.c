// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/sudo.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
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
