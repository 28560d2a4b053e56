// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Stands for libcublasLt. Descriptors are as the libraries of CUDA 11.11 to 13.1 make them, which
 * tests/probes/cublas/test_real.py compares.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct layout {
	uint32_t type, order;
	uint64_t rows, columns;
	int64_t leading;
	int32_t batch;
	uint32_t mode;
	int64_t stride, plane, unused;
};

struct desc {
	uint64_t version;
	uint32_t compute, scale, pointer_mode, transa, transb, transc, fill, epilogue;
	uint64_t unused[27];
};

int cublasLtMatrixLayoutCreate(struct layout **out, uint32_t type, uint64_t rows, uint64_t columns, int64_t leading)
{
	*out = malloc(sizeof(**out));
	**out = (struct layout){ type, 0, rows, columns, leading, .batch = 1 };
	return 0;
}

int cublasLtMatrixLayoutSetAttribute(struct layout *l, int attribute, const void *value, size_t size)
{
	if (attribute == 5)
		memcpy(&l->batch, value, sizeof(l->batch));
	return 0;
}

int cublasLtMatmulDescCreate(struct desc **out, uint32_t compute, uint32_t scale)
{
	*out = calloc(1, sizeof(**out));
	(*out)->compute = compute;
	(*out)->scale = scale;
	return 0;
}

int cublasLtMatmulDescSetAttribute(struct desc *d, int attribute, const void *value, size_t size)
{
	if (attribute == 3)
		memcpy(&d->transa, value, sizeof(d->transa));
	if (attribute == 4)
		memcpy(&d->transb, value, sizeof(d->transb));
	return 0;
}

int cublasLtMatmul(void *handle)
{
	return handle == (void *)0xbad ? 13 : 0;
}
