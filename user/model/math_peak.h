/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The most floating-point operations that a GPU can do, by the arithmetic that a product of matrices uses. */
#pragma once

#include "model/gpu.h"

enum math_unit {
	MATH_UNIT_UNKNOWN,
	MATH_FP64, /* with tensor cores where the GPU has them for it */
	MATH_FP32,
	MATH_TF32,
	MATH_FP16, /* and bfloat16, summed in FP32 */
	MATH_FP8,
	MATH_INT8,
	MATH_UNITS,
};

/* Returns the arithmetic of a product by enum cublas_type, cublas_compute and cublas_math. */
enum math_unit math_peak__unit(u32 type, u32 compute, u32 mode);
/* "TF32"; NULL: not known */
const char *math_peak__unit_name(enum math_unit unit);
/* FLOP per second of the device; 0: not known */
double math_peak__of(const struct gpu_device_facts *device, enum math_unit unit);
