/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include "findings/finding.h"

/*
 * Merges findings of different processes of one user (names NULL: of any) with the same cause in the same code, such as
 * those of a server's workers, into the first one, and sets n to the number of those that are left. Returns 0, or
 * -ENOMEM: some were not merged.
 */
int finding__merge(struct finding *list, u32 *n, const struct names *names);
