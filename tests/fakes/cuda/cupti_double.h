/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of CUPTI's double share. */
#pragma once

#include "fake.h"

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_version.h>

/* The newest layouts of the headers at hand. */
#if CUPTI_API_VERSION >= 130500
#define KERNEL	    CUpti_ActivityKernel13
#define MEMCPY	    CUpti_ActivityMemcpy7
#define MEMSET	    CUpti_ActivityMemset5
#define MEMORY_POOL CUpti_ActivityMemoryPool3
#define DEVICE	    CUpti_ActivityDevice6
#define CONTEXT	    CUpti_ActivityContext4
#else
#define KERNEL	    CUpti_ActivityKernel9
#define MEMCPY	    CUpti_ActivityMemcpy6
#define MEMSET	    CUpti_ActivityMemset4
#define MEMORY_POOL CUpti_ActivityMemoryPool2
#define DEVICE	    CUpti_ActivityDevice5
#define CONTEXT	    CUpti_ActivityContext3
#endif

struct cupti_record {
	uint64_t bytes[64];
};

/* Makes NVIDIA's record of it; its size. Not finished: without times. */
size_t cupti__record(struct cupti_record *out, const struct fake_record *r, bool finished);
size_t cupti__record_size(uint32_t kind);
/* A moment on the device's clock. */
uint64_t cupti__time(uint64_t host);
void cupti__sweep(bool all);
