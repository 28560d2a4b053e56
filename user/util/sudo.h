/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SONDE_UTIL_SUDO_H
#define SONDE_UTIL_SUDO_H

#include <stdbool.h>
#include <sys/types.h>

/* The user and group behind sudo, from SUDO_UID and SUDO_GID, which count for root alone. false: none, or root. */
bool sudo__user(uid_t *uid, gid_t *gid);

#endif
