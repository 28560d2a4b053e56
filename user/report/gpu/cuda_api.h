/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What report cuda-api and the summary both print of CUDA calls. */
#pragma once

#include "model/cuda_calls.h"
#include "output/table.h"

/* Adds the table of functions that nsys calls cuda_api_sum. */
struct table *cuda_api__table(const struct cuda_calls *a, struct report_output *out, const char *name);
/* Adds notes on calls that the table counts otherwise. */
void cuda_api__add_notes(const struct cuda_calls *a, struct report_output *out);
