/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `sonde list probes --resolve`: where in a file, or in what a process maps, each probe would be. */
#ifndef SONDE_CMD_RESOLVE_H
#define SONDE_CMD_RESOLVE_H

#include "attach/embedded.h"
#include "report/table.h"

/*
 * Adds the tables `places` and `totals`. what is a file or a pid; placed, if not
 * NULL, a glob of functions that are looked at as placed calls, whatever family
 * wants. bpf must live until they are printed. 0 or negative errno with a message.
 */
int resolve__add(const struct embedded *bpf, struct report_output *out, const char *what, const char *placed, char *err,
		 size_t len);

#endif
