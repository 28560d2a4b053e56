// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The formulas are those of LAPACK Working Note 41 (netlib.org/lapack/lawns/lawn41.ps) without the products with alpha
 * and beta: multiplications and additions of the matrices' elements.
 */
#include "model/math_flops.h"

#include "util/saturate.h"

struct operations {
	u64 products, sums;
};

static u64 times(u64 a, u64 b)
{
	return saturate__product(a, b);
}

static struct operations equal(u64 n)
{
	return (struct operations){ n, n };
}

/* size rows, each with a product more than the row above; and a sum less than products */
static struct operations triangle(u64 size, u64 others)
{
	return (struct operations){
		.products = times(others, times(size, size + 1) / 2),
		.sums = size ? times(others, times(size, size - 1) / 2) : 0,
	};
}

static struct operations operations_of(const struct math_size *s)
{
	u64 m = (u64)s->m, n = (u64)s->n, k = (u64)s->k, side = s->is_right ? n : m;

	switch (s->operation) {
	case MATH_GEMM:
	case MATH_CONVOLUTION:
		return equal(times(m, times(n, k)));
	case MATH_SYMM:
		return equal(times(m, times(n, side)));
	case MATH_SYRK:
		return equal(times(k, times(n, n + 1) / 2));
	case MATH_SYR2K:
		return (struct operations){ times(k, times(n, n)), saturate__sum(times(k, times(n, n)), n) };
	case MATH_TRIANGLE:
		return triangle(side, s->is_right ? m : n);
	case MATH_GEMV:
		return equal(times(m, n));
	case MATH_SYMV:
		return equal(times(n, n));
	default:
		return equal(0);
	}
}

bool math_flops__count(const struct math_size *s, u64 *flops)
{
	struct operations o;

	if (s->operation == MATH_OTHER || s->m < 0 || s->n < 0 || s->k < 0 || s->batch < 0)
		return false;
	o = operations_of(s);
	/* a complex product is four real ones and two sums, a complex sum two */
	if (s->is_complex)
		*flops = saturate__sum(times(6, o.products), times(2, o.sums));
	else
		*flops = saturate__sum(o.products, o.sums);
	*flops = times(*flops, (u64)s->batch);
	return true;
}
