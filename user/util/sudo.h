/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Gets the user and group that called sudo, by SUDO_UID and SUDO_GID if sonde is root. false: none, or root. */
bool sudo__user(uid_t *uid, gid_t *gid);
/*
 * From here on, what this process opens and creates is opened and created with the rights of that user, if there is
 * one; otherwise it stays root. A namespace without that user has only the rights of the user who made it, and is left
 * as it is. Returns 0 or negative errno.
 */
int sudo__use_files_of_user(void);
