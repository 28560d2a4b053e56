/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A shell pattern for a process name, compiled to tables for BPF, one lookup per character: '*', '?', '[a-z]', '[!a-z]'
 * and '\' as in fnmatch(3).
 */
#pragma once

#include "core/maps.h"

#define COMM_STEPS 15 /* TASK_COMM_LEN without its NUL */

/* Returns 0; -E2BIG: the pattern matches only names longer than any process has; -EINVAL: it is empty. */
int comm_glob__compile(struct comm_glob *g, const char *pattern);
