/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ids of Python functions in a trace. Equal functions of several processes, or of several loads, have one id. */
#pragma once

#include "record/tables.h"
#include "util/recent.h"

struct session;

struct python_functions {
	struct recent ids; /* struct function: u32 */
	u32 last; /* the id assigned last */
};

/* max: of functions in one generation of the table */
void python_functions__init(struct python_functions *f, u32 max);
void python_functions__free(struct python_functions *f);
/*
 * Returns the id of a function, whose meta_code is written if it is new; 0: no memory. name, file: string ids; file is
 * that of python_functions__path().
 */
u32 python_functions__id(struct session *s, struct python_functions *f, u32 name, u32 file, u32 line);
/*
 * Returns the path to write. With --no-args the part in Python's standard library remains, because the user's code
 * could not be recognized without it.
 */
const char *python_functions__path(const struct session *s, const char *file);
void python_functions__sizes(const struct python_functions *f, table_size_fn *fn, void *arg);
