/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include "model/facts.h"
#include "output/table.h"

/* Warnings of a recording that each output has in full */
#define WARNINGS_SHOWN 3

/* Returns the origin of an output: its trace, and what is missing in it. NULL: no trace. */
struct report_origin trace_origin(const struct trace_facts *facts);
