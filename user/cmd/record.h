/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `sonde record`: the command line (record.c, record_options.c) and the recording (record_run.c, record_inject.c). */
#pragma once

#include "cmd/functions.h"
#include "cmd/launch.h"
#include "cmd/pids.h"
#include "cmd/scope.h"
#include "core/maps.h"
#include "record/session.h"

struct record_args {
	struct session_args session;
	const char *output;
	bool force;
	bool quiet; /* print only errors, warnings and losses */
	bool report; /* print the summary afterwards */
	struct scope scope;
	double delay; /* seconds before the recording begins */
	bool has_cost_limit; /* --cost-limit was given */
	bool has_torch_budget; /* --torch-budget was given */
	bool delay_signal; /* the recording begins with SIGUSR1 */
	struct step_schedule schedule; /* session.schedule points to it if it was given */
	struct capture_range step_range; /* session.step_range points to it if it was given */
	struct capture_range capture; /* session.capture points to it if it was given */
	const char *capture_end; /* the value of --capture-range-end; NULL: not given */
	bool inject; /* load the shim into running processes */
	struct functions functions; /* the Python functions to trace */
	u32 not_injected; /* processes into which it could not be loaded */
	bool has_command; /* "--" was given: sonde's own failures are EXIT_OWN_FAILURE */
	struct launch launch;
	struct record_live *live; /* NULL: no line is shown */
	struct pid_list pids;
	const char *comms[COMM_GLOBS + 1]; /* one more than allowed, so that the session reports it */
	const char *cgroups[FILTER_CGROUPS + 1];
	const char *options[64];
	u32 n_options;
	char **copies; /* texts made from the command line, to which the lists above point */
	u32 n_copies;
};

/* record_options.c: these return 0 or negative errno; they have printed what is wrong with a value. */
#define RECORD_OFF_CPU_NS "1000000"
/* Takes ownership of the text until record_options__free(); NULL means that there was no memory for it. */
int record_options__copy(struct record_args *a, char *text);
void record_options__free(struct record_args *a);
/* The values of -F and --off-cpu */
int record_options__frequency(struct record_args *a, const char *arg);
int record_options__off_cpu(struct record_args *a, const char *arg);
/* The value of --schedule: skip_first=N,wait=N,warmup=N,active=N,repeat=N */
int record_options__schedule(struct record_args *a, const char *arg);
/* The values of --capture-range and --capture-range-end, and what both mean together */
int record_options__capture(struct record_args *a, const char *arg);
int record_options__finish_capture(struct record_args *a);
/* For which families processes have to have the shim (enum shim_need) */
unsigned int record_options__shim_needs(const struct record_args *a);
/* Do the shim or probes record PyTorch? */
int record_options__torch(struct record_args *a);
/* The value of --cost-limit, and its default */
int record_options__cost_limit(struct record_args *a, const char *arg);
void record_options__default_cost_limit(struct record_args *a);
/* The value of --step */
int record_options__step(struct record_args *a, const char *arg);
/* Adds a family to those of -t or to the default set. */
int record_options__add_family(struct record_args *a, const char *name);
/* Adds the sampling options of the default set. */
int record_options__add_default_sampling(struct record_args *a);
/*
 * Stores --FAMILY=OPTION or --FAMILY-OPTION NUMBER; session__open() checks it against the BPF object. next is the
 * argument after it; returns 1 if that was its number.
 */
int record_options__of_family(struct record_args *a, const char *arg, const char *next);

/* record_inject.c: loads the shim, and prints which processes did not get it. */
void record_inject__run(struct record_args *a);

/* record_report.c: calls record(a) in a process of its own, then reports. Returns the exit status. */
int record_report__run(struct record_args *a, int (*record)(void *a));

/*
 * record_live.c: follows the records of a recording that begins later; NULL: there is no memory, or another function
 * gets them. Returns what cost most time since the last call, as `sonde top` says it; "": nothing that can be named.
 */
struct record_live;
struct record_live *record_live__follow(struct session_args *a);
const char *record_live__finding(struct record_live *l, u64 now, u64 unmeasured_ns);
void record_live__free(struct record_live *l);

/* record_end.c: prints what was recorded and lost, and the cost. gone: the targets had ended before tracing ran. */
void record_end__print(struct session *s, const char *path, enum end_reason reason, bool gone, bool quiet);

/* Forks the command, if there is one, records, and waits for the command's end. Returns the exit status. */
int record__run(struct record_args *a);
/* Has a signal asked for the end of the recording? */
bool record__is_stopped(void);
