// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Floating-point operations of sizes that no program has, and peaks of devices against NVIDIA's data sheets. */
#include <limits.h>

#include "model/math_flops.h"
#include "model/math_peak.h"
#include "probes/cublas/cublas.h"
#include "test.h"
#include "util/array.h"

static u64 count(struct math_size s)
{
	u64 flop = 0;

	CHECK(math_flops__count(&s, &flop));
	return flop;
}

TEST(sizes_that_do_not_fit_are_cut)
{
	u64 flop;

	for (u32 operation = MATH_GEMM; operation <= MATH_CONVOLUTION; operation++)
		for (u32 i = 0; i < 2; i++)
			CHECK(count((struct math_size){ operation, i, i, LLONG_MAX, LLONG_MAX, LLONG_MAX,
							LLONG_MAX }) == ULLONG_MAX);
	CHECK(!math_flops__count(&(struct math_size){ MATH_GEMM, false, false, -1, 1, 1, 1 }, &flop));
	CHECK(!math_flops__count(&(struct math_size){ MATH_GEMM, false, false, 1, 1, 1, LLONG_MIN }, &flop));
	CHECK(!math_flops__count(&(struct math_size){ MATH_OTHER, false, false, 1, 1, 1, 1 }, &flop));
}

TEST(empty_matrices)
{
	for (u32 operation = MATH_GEMM; operation <= MATH_CONVOLUTION; operation++)
		CHECK(!count((struct math_size){ operation, true, true, 0, 0, 0, 1 }));
}

/* In TFLOP/s: V100 SXM2, A100 SXM, H100 SXM at the clocks of these figures */
TEST(peaks_of_data_sheets)
{
	static const struct {
		struct gpu_device_facts device;
		enum math_unit unit;
		double tera;
	} sheets[] = {
		{ { .multiprocessors = 80, .clock_khz = 1530000, .major = 7 }, MATH_FP16, 125 },
		{ { .multiprocessors = 80, .clock_khz = 1530000, .major = 7 }, MATH_FP64, 7.8 },
		{ { .multiprocessors = 40, .clock_khz = 1590000, .major = 7, .minor = 5 }, MATH_FP16, 65 },
		{ { .multiprocessors = 108, .clock_khz = 1410000, .major = 8 }, MATH_FP64, 19.5 },
		{ { .multiprocessors = 108, .clock_khz = 1410000, .major = 8 }, MATH_FP32, 19.5 },
		{ { .multiprocessors = 108, .clock_khz = 1410000, .major = 8 }, MATH_TF32, 156 },
		{ { .multiprocessors = 108, .clock_khz = 1410000, .major = 8 }, MATH_FP16, 312 },
		{ { .multiprocessors = 108, .clock_khz = 1410000, .major = 8 }, MATH_INT8, 624 },
		{ { .multiprocessors = 132, .clock_khz = 1830000, .major = 9 }, MATH_TF32, 494.7 },
		{ { .multiprocessors = 132, .clock_khz = 1830000, .major = 9 }, MATH_FP16, 989.4 },
		{ { .multiprocessors = 132, .clock_khz = 1830000, .major = 9 }, MATH_FP8, 1978.9 },
		{ { .multiprocessors = 132, .clock_khz = 1980000, .major = 9 }, MATH_FP32, 67 },
		{ { .multiprocessors = 84, .clock_khz = 1740000, .major = 8, .minor = 6 }, MATH_FP32, 37.4 },
		{ { .multiprocessors = 84, .clock_khz = 1740000, .major = 8, .minor = 6 }, MATH_FP16, 0 },
		{ { .multiprocessors = 84, .clock_khz = 1740000, .major = 99 }, MATH_FP32, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(sheets); i++) {
		double tera = math_peak__of(&sheets[i].device, sheets[i].unit) / 1e12;

		CHECK(tera >= sheets[i].tera * 0.995 && tera <= sheets[i].tera * 1.005);
	}
	CHECK(!math_peak__of(NULL, MATH_FP32) && !math_peak__of(&sheets[0].device, MATH_UNITS));
}

TEST(arithmetic_of_products)
{
	CHECK(math_peak__unit(CUBLAS_R_32F, CUBLAS_32F, CUBLAS_MATH_DEFAULT) == MATH_FP32);
	CHECK(math_peak__unit(CUBLAS_R_32F, CUBLAS_32F, CUBLAS_MATH_TF32) == MATH_TF32);
	CHECK(math_peak__unit(CUBLAS_C_32F, CUBLAS_32F_PEDANTIC, CUBLAS_MATH_TF32) == MATH_FP32);
	CHECK(math_peak__unit(CUBLAS_R_32F, CUBLAS_32F_FAST_TF32, CUBLAS_MATH_DEFAULT) == MATH_TF32);
	CHECK(math_peak__unit(CUBLAS_R_32F, CUBLAS_32F, CUBLAS_MATH_UNKNOWN) == MATH_UNIT_UNKNOWN);
	CHECK(math_peak__unit(CUBLAS_R_16BF, CUBLAS_32F, CUBLAS_MATH_UNKNOWN) == MATH_FP16);
	CHECK(math_peak__unit(~0u, ~0u, ~0u) == MATH_UNIT_UNKNOWN);
}

TEST_MAIN()
