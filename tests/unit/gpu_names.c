// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names of kernels: demangled as people read them, also if the name is made to grow without bound. */
#include "gpu_support.h"
#include "test.h"

TEST(demangles)
{
	struct gpu_model *m = NULL;
	char bomb[4001];
	struct made g;
	size_t len;

	REQUIRE(made__begin(&g) && made__open(&g));
	m = g.model;
	CHECK_TEXT(gpu_model__demangled(m, "_Z4gemmILi128EEvPfS0_S0_i"), "void gemm<128>(float*, float*, float*, int)");
	CHECK_TEXT(gpu_model__short_name(m, "_Z4gemmILi128EEvPfS0_S0_i"), "gemm");
	CHECK_TEXT(gpu_model__short_name(m, "_Z7softmaxPfi"), "softmax");
	CHECK_TEXT(gpu_model__demangled(m, "triton_poi_fused_add_0"), "triton_poi_fused_add_0");
	CHECK_TEXT(gpu_model__short_name(m, "triton_poi_fused_add_0"), "triton_poi_fused_add_0");
	CHECK_TEXT(
		gpu_model__short_name(
			m,
			"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEENS_6detail5ArrayIPcLi1EEEEEviT0_T1_"),
		"vectorized_elementwise_kernel");
	CHECK_TEXT(gpu_model__short_name(
			   m, "_ZN7cutlass6KernelI42cutlass_80_tensorop_s1688gemm_128x128_nn_aEEvNT_6ParamsE"),
		   "cutlass_80_tensorop_s1688gemm_128x128_nn_a");
	CHECK_TEXT(gpu_model__short_name(m,
					 "_ZN7cutlass7Kernel2I37cutlass_80_simt_sgemm_128x64_8x5_tn_1EEvNT_6ParamsE"),
		   "cutlass_80_simt_sgemm_128x64_8x5_tn_1");
	/* an operator() within the template arguments is not the name */
	CHECK_TEXT(
		gpu_model__short_name(
			m,
			"_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastIZZZNS0_23direct_copy_k"
			"ernel_cudaERNS_18TensorIteratorBaseEENKUlvE1_clEvENKUlvE5_clEvEUlfE_EEvS4_RKT_EUliE_EEviT1_"),
		"elementwise_kernel");
	CHECK_TEXT(gpu_model__short_name(m, "_ZN1aplERKS_"), "operator+");
	CHECK_TEXT(gpu_model__short_name(m, "_ZN1altERKS_"), "operator<");
	CHECK_TEXT(gpu_model__short_name(m, "_ZN12_GLOBAL__N_13addEPf"), "add");
	CHECK_TEXT(gpu_model__demangled(m, "_Z"), "_Z");
	CHECK_TEXT(gpu_model__demangled(m, ""), "");
	CHECK_TEXT(gpu_model__demangled(m, "kernel 0x7f"), "kernel 0x7f");
	CHECK(!gpu_model__demangled(m, NULL));
	/* each part is twice the previous one: 2^900 characters */
	len = (size_t)sprintf(bomb, "_Z1fI1AI1BS_E");
	for (u32 i = 0; len < 3900; i++)
		len += (size_t)sprintf(bomb + len, i ? "S_IS%c_S%c_E" : "S_IS0_S0_E", '0' + i % 9, '0' + i % 9);
	strcpy(bomb + len, "Evv");
	CHECK(strlen(gpu_model__demangled(m, bomb)) < 32 << 10);
	memset(bomb, 'P', 4000);
	memcpy(bomb, "_Z1f", 4);
	bomb[4000] = '\0';
	CHECK(gpu_model__demangled(m, bomb));
	made__end(&g);
}

TEST_MAIN()
