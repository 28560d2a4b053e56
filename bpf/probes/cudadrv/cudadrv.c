// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Host code: names the option with which driver calls record Python stacks. */
#include "record/family.h"

FAMILY_HOST(cudadrv_host) = {
	.name = "cudadrv",
	.toggles = true,
	.python_option = "stacks",
};
