/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The Python functions that the options of `record` name, as the text that the shim reads (core/shim_functions.h). */
#pragma once

#include "core/types.h"

struct functions {
	char *text; /* NULL: none are named */
	u32 len;
};

/* --function MODULE:QUALNAME, --functions-trace FILE: return 0, or negative errno after printing an error. */
int functions__add(struct functions *f, const char *name);
int functions__add_file(struct functions *f, const char *path);
/* --torch=functions */
int functions__add_torch(struct functions *f);
