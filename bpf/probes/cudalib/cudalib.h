/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls of NVIDIA's other libraries, by name and time. */
#pragma once

#include "core/event.h"

FAMILY(cudalib, 0x11, FAMILY_ON_REQUEST,
       "calls of cuFFT, cuSPARSE, cuSOLVER, cuRAND, nvJPEG, NPP, TensorRT, and vectors and solvers of cuBLAS");

struct cudalib_call {
	struct call call;
} EVENT(cudalib_call, 0x1101, "a call of one of these libraries");
