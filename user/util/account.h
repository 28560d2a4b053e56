/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include "core/types.h"

#include <stdbool.h>
#include <sys/types.h>

/*
 * The account that is responsible for a process: its effective user, or in a user namespace that another user than root
 * has made the maker of the outermost one, who has subordinate ids (subuid(5)). No file system but /proc is asked, and
 * no lock of the process is taken. false: the process has ended. core_vmas (bpf/core/core.bpf.c) finds the same.
 */
bool account__of(u32 pid, uid_t *uid);
