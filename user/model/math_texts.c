// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes sizes and types of calls for people. */
#include "model/math_calls.h"
#include "output/text.h"
#include "probes/cublas/cublas.h"
#include "util/array.h"

static char transpose(u32 t)
{
	return t <= CUBLAS_C ? "NTC"[t] : '?';
}

static bool sums_over(const struct math_key *k)
{
	return k->operation == MATH_GEMM || k->operation == MATH_CONVOLUTION || k->operation == MATH_SYRK ||
	       k->operation == MATH_SYR2K;
}

const char *math_key__sizes(const struct math_key *k, char *buf, size_t size)
{
	struct text_buffer text = { .buf = buf, .size = size };

	buf[0] = '\0';
	if (k->operation == MATH_OTHER)
		return NULL;
	if (k->operation == MATH_CONVOLUTION)
		text__add(&text, "conv ");
	if (k->operation == MATH_GEMM && !k->products)
		text__add(&text, "%c%c ", transpose(k->transa), transpose(k->transb));
	if (k->operation == MATH_SYMM || k->operation == MATH_TRIANGLE)
		text__add(&text, "%s ", k->is_right ? "right" : "left");
	text__add(&text, "%lld", k->m ? k->m : k->n);
	if (k->m)
		text__add(&text, " x %lld", k->n);
	if (sums_over(k))
		text__add(&text, " x %lld", k->k);
	if (k->batch != 1)
		text__add(&text, ", batch %lld", k->batch);
	if (k->products > 1)
		text__add(&text, ", and %u more", k->products - 1);
	return buf;
}

static const char *type_name(u32 type)
{
	static const char *const names[] = {
		[CUBLAS_R_32F] = "R_32F",	  [CUBLAS_R_64F] = "R_64F",	    [CUBLAS_R_16F] = "R_16F",
		[CUBLAS_R_8I] = "R_8I",		  [CUBLAS_C_32F] = "C_32F",	    [CUBLAS_C_64F] = "C_64F",
		[CUBLAS_C_16F] = "C_16F",	  [CUBLAS_C_8I] = "C_8I",	    [CUBLAS_R_8U] = "R_8U",
		[CUBLAS_C_8U] = "C_8U",		  [CUBLAS_R_32I] = "R_32I",	    [CUBLAS_C_32I] = "C_32I",
		[CUBLAS_R_16BF] = "R_16BF",	  [CUBLAS_C_16BF] = "C_16BF",	    [CUBLAS_R_4I] = "R_4I",
		[CUBLAS_R_8F_E4M3] = "R_8F_E4M3", [CUBLAS_R_8F_E5M2] = "R_8F_E5M2", [CUBLAS_R_4F_E2M1] = "R_4F_E2M1",
	};

	return type < ARRAY_LEN(names) && names[type] ? names[type] : "?";
}

const char *math_key__types(const struct math_key *k, char *buf, size_t size)
{
	struct text_buffer text = { .buf = buf, .size = size };

	buf[0] = '\0';
	if (k->operation == MATH_OTHER)
		return NULL;
	text__add(&text, "%s", type_name(k->a_type));
	if (k->b_type != k->a_type)
		text__add(&text, " * %s", type_name(k->b_type));
	if (k->c_type != k->a_type)
		text__add(&text, " to %s", type_name(k->c_type));
	/* products of other types leave no choice */
	if ((k->a_type == CUBLAS_R_32F || k->a_type == CUBLAS_C_32F) && k->unit)
		text__add(&text, " as %s", math_peak__unit_name(k->unit));
	return buf;
}
