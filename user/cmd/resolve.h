/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `sonde list probes --resolve` reports where each probe would be in a file, or in the files that a process maps. */
#pragma once

#include "cmd/scope.h"
#include "kernel/embedded.h"
#include "output/table.h"

struct resolve_options {
	const char *target; /* a file or a pid */
	const char *placed; /* glob of functions to examine as placed calls; or NULL */
	struct scope scope; /* as scope__apply_to_processes left it */
};

/* Adds tables `places` and `totals`, to be printed before bpf is closed. Returns 0 or negative errno with a message. */
int resolve__add(const struct embedded *bpf, struct report_output *out, const struct resolve_options *options,
		 char *err, size_t len);
