/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `--group-by nvtx`: the time that a report is about, by the innermost range of NVTX. */
#pragma once

#include "report/report.h"

int nvtx_parts__run(enum nvtx_parts parts, const struct query *args, struct report_output *out);
/* nvtx_gpu.c: kernels by range */
int nvtx_kernels__run(const struct query *args, struct report_output *out);
