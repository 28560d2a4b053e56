/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include "core/types.h"

#include <stdbool.h>
#include <sys/types.h>

/*
 * sonde's own accounts, which no other one has: between systemd's ranges for containers and 2^31, which distributions
 * leave unused
 */
#define UID_WORKER   1936682596
#define UID_ATTACHER 1936682597

/*
 * The account that is responsible for a process: its effective user, or in a user namespace that another user than
 * root has made the maker of the outermost one; of a subordinate id (subuid(5)) its owner. No file system but /proc is
 * asked, and no lock of the process is taken. false: the process has ended. core_vmas (bpf/core/core.bpf.c) finds the
 * same, but for subordinate ids.
 */
bool account__of(u32 pid, uid_t *uid);
/*
 * Returns the account that has the user as a subordinate id, else the user. Outside of its namespaces such a user has
 * the programs that it gave a set-user-ID bit within, and the files.
 */
uid_t account__owner(uid_t uid);
/* Reads /etc/subuid, as the first account__owner() does: call it before rights are given up. */
void account__load(void);
