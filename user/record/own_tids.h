/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's numbers of threads in other pid namespaces, by the numbers that these threads know. */
#pragma once

#include "util/recent.h"

struct own_tids {
	struct recent tids; /* struct own_tid -> u32 */
};

void own_tids__init(struct own_tids *o);
void own_tids__free(struct own_tids *o);
