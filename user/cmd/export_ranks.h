/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `sonde export FILE.. --to kineto -o DIR/`: DIR/rank_0/HOST_PID.TIME.pt.trace.json and so on, a file for each rank of
 * distributed training, with the name that torch.profiler's tensorboard_trace_handler() gives it.
 */
#pragma once

#include "cmd/pids.h"
#include "core/types.h"

struct export_ranks {
	char *const *files;
	u32 n_files;
	const char *folder; /* ends in '/' */
	bool force;
	const char *time; /* value of --time; NULL: all of it */
	const struct pid_list *pids; /* n 0: all */
	s64 rank; /* -1: all */
};

/* Returns the exit status. */
int export_ranks__write(const struct export_ranks *x);
