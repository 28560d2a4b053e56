// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "nvtx.h"

#include "shim.h"

void nvtx__payload(const struct nvtx_payload_data *p, int n, uint64_t time)
{
}
