/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by stacks.c and stacks_origin.c. */
#pragma once

#include "model/stacks.h"
#include "util/map.h"

/* Which files processes said to be of Python's standard library, or their script (events proc_python). */
struct code_origins {
	const char **libraries; /* folders */
	u32 n_libraries;
	struct map scripts; /* u64 hash of the path -> u8 */
};

/* A trace without such events is fine. 0 or negative errno. */
int code_origins__load(struct code_origins *o, struct trace *t);
enum code_origin code_origins__of(const struct code_origins *o, const char *file);
void code_origins__free(struct code_origins *o);
