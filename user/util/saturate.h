/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers of a trace, which can be any, in integers. A result that the integer type can't hold becomes the nearest
 * integer of the type. That of a floating-point number is undefined in C; NaN becomes 0.
 */
#pragma once

#include "core/types.h"

#include <limits.h>
#include <math.h>

static inline u64 saturate__u64(double d)
{
	return d >= 0x1p64 ? ULLONG_MAX : d > 0 ? (u64)d : 0;
}

static inline s64 saturate__s64(double d)
{
	if (isnan(d))
		return 0;
	return d >= 0x1p63 ? LLONG_MAX : d < -0x1p63 ? LLONG_MIN : (s64)d;
}

/* The nearest integer, for sums and means that are printed as one */
static inline u64 saturate__round(double d)
{
	return saturate__u64(d + 0.5);
}

static inline u64 saturate__sum(u64 a, u64 b)
{
	return a + b < a ? ~0ull : a + b;
}

static inline u64 saturate__product(u64 a, u64 b)
{
	u64 product;

	return __builtin_mul_overflow(a, b, &product) ? ~0ull : product;
}
