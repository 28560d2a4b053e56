/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Functions of scripts as node names them in perf maps: "JS:^load /srv/app.js:12:3" */
#pragma once

#include <stdbool.h>

#include "core/types.h"

struct script_name {
	const char *symbol; /* the name without how the function is compiled, as a function is compiled again */
	const char *function, *file; /* not terminated */
	int function_len, file_len;
	u32 line; /* in which the function begins */
};

/* Divides a name; false: it is no function of a script. The parts lie in the name, which must outlive them. */
bool script_name__parse(const char *name, struct script_name *out);
