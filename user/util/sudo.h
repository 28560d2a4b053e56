/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Gets the user and group that called sudo, by SUDO_UID and SUDO_GID if sonde is root. false: none, or root. */
bool sudo__user(uid_t *uid, gid_t *gid);
