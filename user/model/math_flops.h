/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Floating-point operations of calls of mathematics libraries. docs/math.md has the definitions and their source. */
#pragma once

#include "core/types.h"

enum math_operation {
	MATH_OTHER, /* not known, or not counted */
	MATH_GEMM,
	MATH_SYMM,
	MATH_SYRK,
	MATH_SYR2K,
	MATH_TRIANGLE, /* a product with a triangular matrix, or the solution of one */
	MATH_GEMV,
	MATH_SYMV,
	MATH_CONVOLUTION,
};

/* Sizes as the library's functions name them; of a convolution those of the matrices whose product it is. */
struct math_size {
	enum math_operation operation;
	bool is_complex, is_right; /* is_right: the symmetric or triangular matrix is */
	s64 m, n, k, batch;
};

/* Returns false if they can't be counted. A number that does not fit is cut: sizes are untrusted. */
bool math_flops__count(const struct math_size *s, u64 *flops);
