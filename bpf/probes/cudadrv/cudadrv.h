/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of the CUDA driver library: those of the runtime with their names, and events of the driver alone. A call that
 * the runtime or the driver makes within a recorded call is left out, except for cudadrv_function: see docs/cudadrv.md.
 */
#pragma once

#include "probes/cuda/cuda_events.h"

FAMILY(cudadrv, 0x06, FAMILY_DEFAULT, "calls of the CUDA driver (libcuda) that the runtime did not make");

CUDA_EVENTS(cudadrv, 0x06);

struct cudadrv_module {
	struct call call;
	u64 module UNIT(hex) DOC("CUmodule or CUlibrary loaded or unloaded; 0 if loading it failed");
} EVENT(cudadrv_module, 0x0616, "device code loaded or unloaded");

#define CUDADRV_NAME 1024 /* bytes of a kernel's name, with its NUL */

struct cudadrv_function {
	struct call call;
	u64 function UNIT(hex) DOC("CUfunction or CUkernel that was looked up; 0 if that failed");
	u64 module UNIT(hex) DOC("CUmodule or CUlibrary in which it was looked up; 0: the call does not name one");
	u64 kernel UNIT(hex) DOC("of cuKernelGetFunction: the CUkernel of the CUfunction, else 0");
	char name[] DOC("mangled name of the kernel, at most its first 1023 bytes; empty if `kernel` identifies it");
} EVENT(cudadrv_function, 0x0617, "a kernel looked up by its name, or its name queried");

struct cudadrv_map {
	struct call call;
	u64 address UNIT(hex) DOC("where it is mapped");
	u64 bytes UNIT(bytes) DOC("of the mapping");
	u64 handle UNIT(hex) DOC("of the memory (cudadrv_alloc.address); 0 when it is unmapped");
	u64 offset UNIT(bytes) DOC("in the memory");
} EVENT(cudadrv_map, 0x0618, "physical memory mapped to device addresses or unmapped");

struct cudadrv_context {
	struct call call;
	u64 context UNIT(hex)
		DOC("created, retained or destroyed; 0: that failed, or it is the primary one of a device");
	u32 api_flags DOC("as passed");
	s32 device DOC("device number; -1: the call does not name one");
} EVENT(cudadrv_context, 0x0619, "a context created, retained, released, reset or destroyed");
