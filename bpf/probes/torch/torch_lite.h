/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which operators are recorded only with --torch=all. */
#pragma once

#include <stdbool.h>

/*
 * Does the operator only make a view, reserve memory, read one number, or call another operator that is recorded? name:
 * with or without its overload, aten::view.dtype.
 */
bool torch_lite__leaves_out(const char *name);
/* Does PyTorch report calls of this operator to profilers? */
bool torch_lite__is_observed(const char *name);
