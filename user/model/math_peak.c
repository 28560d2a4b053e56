// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/math_peak.h"

#include "probes/cublas/cublas.h"
#include "util/array.h"

/*
 * FLOP per clock of a multiprocessor, dense: from the peak rates in NVIDIA's white papers on V100, T4, A100, H100 and
 * Blackwell, divided by multiprocessors and boost clock, and from the table of arithmetic throughput in the CUDA C++
 * Programming Guide. Rates of tensor cores that differ between products of one compute capability (8.6, 8.9, 12.0) are
 * left out.
 */
static const struct {
	u32 major, minor;
	u32 per_clock[MATH_UNITS];
} rates[] = {
	{ 7, 0, { [MATH_FP64] = 64, [MATH_FP32] = 128, [MATH_FP16] = 1024 } },
	{ 7, 5, { [MATH_FP64] = 4, [MATH_FP32] = 128, [MATH_FP16] = 1024, [MATH_INT8] = 2048 } },
	{ 8, 0, { 0, 128, 128, 1024, 2048, 0, 4096 } },
	{ 8, 6, { [MATH_FP64] = 4, [MATH_FP32] = 256 } },
	{ 8, 9, { [MATH_FP64] = 4, [MATH_FP32] = 256 } },
	{ 9, 0, { 0, 256, 256, 2048, 4096, 8192, 8192 } },
	{ 10, 0, { [MATH_FP32] = 256, [MATH_TF32] = 4096, [MATH_FP16] = 8192, [MATH_FP8] = 16384 } },
};

/* What products of these types use if the compute type leaves it open */
static enum math_unit unit_of_type(u32 type)
{
	switch (type) {
	case CUBLAS_R_64F:
	case CUBLAS_C_64F:
		return MATH_FP64;
	case CUBLAS_R_32F:
	case CUBLAS_C_32F:
		return MATH_FP32;
	case CUBLAS_R_16F:
	case CUBLAS_C_16F:
	case CUBLAS_R_16BF:
	case CUBLAS_C_16BF:
		return MATH_FP16;
	case CUBLAS_R_8F_E4M3:
	case CUBLAS_R_8F_E5M2:
		return MATH_FP8;
	case CUBLAS_R_8I:
	case CUBLAS_R_8U:
		return MATH_INT8;
	default:
		return MATH_UNIT_UNKNOWN;
	}
}

enum math_unit math_peak__unit(u32 type, u32 compute, u32 mode)
{
	enum math_unit unit = unit_of_type(type);

	if (unit != MATH_FP32)
		return unit;
	switch (compute) {
	case CUBLAS_32F_FAST_TF32:
		return MATH_TF32;
	case CUBLAS_32F_FAST_16F:
	case CUBLAS_32F_FAST_16BF:
		return MATH_FP16;
	case CUBLAS_32F_PEDANTIC:
		return MATH_FP32;
	case CUBLAS_32F:
	case CUBLAS_R_32F:
		return mode == CUBLAS_MATH_TF32	     ? MATH_TF32 :
		       mode == CUBLAS_MATH_TENSOR_OP ? MATH_FP16 :
		       mode == CUBLAS_MATH_DEFAULT   ? MATH_FP32 :
		       mode == CUBLAS_MATH_PEDANTIC  ? MATH_FP32 :
						       MATH_UNIT_UNKNOWN;
	default:
		return MATH_UNIT_UNKNOWN;
	}
}

const char *math_peak__unit_name(enum math_unit unit)
{
	static const char *const names[MATH_UNITS] = {
		[MATH_FP64] = "FP64", [MATH_FP32] = "FP32", [MATH_TF32] = "TF32",
		[MATH_FP16] = "FP16", [MATH_FP8] = "FP8",   [MATH_INT8] = "INT8",
	};

	return unit < MATH_UNITS ? names[unit] : NULL;
}

double math_peak__of(const struct gpu_device_facts *device, enum math_unit unit)
{
	for (u32 i = 0; device && unit < MATH_UNITS && i < ARRAY_LEN(rates); i++)
		if (rates[i].major == device->major && rates[i].minor == device->minor)
			return (double)rates[i].per_clock[unit] * device->multiprocessors * device->clock_khz * 1e3;
	return 0;
}
