/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include "core/types.h"

#include <stdbool.h>
#include <stddef.h>

/* Is the process frozen with its cgroup of version 2? Sets `cgroup` to its path below the mount; "": it is not. */
bool process__is_frozen(u32 pid, char *cgroup, size_t len);
