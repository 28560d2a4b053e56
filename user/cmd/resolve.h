/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `sonde list probes --resolve`: where in a file, or in what a process maps, each probe would be. */
#ifndef SONDE_CMD_RESOLVE_H
#define SONDE_CMD_RESOLVE_H

#include "cmd/scope.h"
#include "kernel/embedded.h"
#include "output/table.h"

struct resolve_options {
	const char *what; /* a file or a pid */
	const char *
		placed; /* a glob of functions that are examined as placed calls, with or without a family that probes them; or NULL */
	struct scope scope; /* resolved */
};

/* Adds the tables `places` and `totals`. bpf must live until they are printed. 0 or negative errno with a message. */
int resolve__add(const struct embedded *bpf, struct report_output *out, const struct resolve_options *options,
		 char *err, size_t len);

#endif
