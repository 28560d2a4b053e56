// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The host's side: with which option the driver's calls have Python stacks. */
#include "record/family.h"

FAMILY_HOST(cudadrv_host) = {
	.name = "cudadrv",
	.python_option = "stacks",
};
