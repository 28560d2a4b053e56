/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The arguments of --capture-range and --capture-range-end. */
#pragma once

#include "glob.h"

/* Bytes of the patterns for an NVTX range's name and domain, with the NUL, and of the texts that are compared */
#define CAPTURE_PATTERN 64
#define CAPTURE_TEXT	128

/* The first argument of the shim's sonde_cupti_range() */
enum capture_what {
	CAPTURE_BEGINS = 1,
	CAPTURE_ENDS = 2,
};

struct capture_range {
	bool is_nvtx; /* ranges of NVTX; else cudaProfilerStart() to cudaProfilerStop() */
	char name[CAPTURE_PATTERN], domain[CAPTURE_PATTERN]; /* globs; domain "": the default domain */
	u32 max; /* ranges of each process that are recorded, after which the recording ends; 0: all */
};
