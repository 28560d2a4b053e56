/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `sonde record`: the command line (record.c) and the recording (record_run.c, record_inject.c). */
#ifndef SONDE_CMD_RECORD_H
#define SONDE_CMD_RECORD_H

#include "cmd/launch.h"
#include "cmd/pids.h"
#include "cmd/scope.h"
#include "core/maps.h"
#include "record/session.h"

struct record_args {
	struct session_args session;
	const char *output;
	bool force;
	struct scope scope;
	double duration; /* seconds, 0: until stopped */
	double delay; /* seconds before it begins */
	bool delay_signal; /* it begins with SIGUSR1 */
	bool inject; /* the shim into what runs already */
	u32 not_injected; /* processes that it could not be loaded into */
	bool has_command; /* "--" was given: failures of sonde's own have a status of their own */
	struct launch launch;
	struct pid_list pids;
	const char *comms[COMM_GLOBS + 1]; /* one more than allowed, so that the session reports it */
	const char *cgroups[FILTER_CGROUPS + 1];
	const char *options[64];
	u32 n_options;
};

/* record_inject.c: the families of -t with --inject; and the injection, which prints what could not be done */
const char *record_inject__families(const char *families);
void record_inject__run(struct record_args *a);

/* From the fork of the command, if there is one, to the end of both. Returns the exit status. */
int record__run(struct record_args *a);
/* Has a signal asked for the end of the recording? */
bool record__is_stopped(void);

#endif
