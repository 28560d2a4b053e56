/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of `sonde info` that read events (info_parts.c). */
#pragma once

#include "model/facts.h"
#include "model/names.h"
#include "output/table.h"

/* Adds the table of probed files: when each was live, and its attach gap. Returns 0 or negative errno. */
int info__objects(struct trace *t, const struct trace_facts *facts, const struct names *names,
		  struct report_output *out);
/* Adds the table of what tracing cost, from the last event about it. Returns 0 or negative errno. */
int info__cost(struct trace *t, struct report_output *out);
