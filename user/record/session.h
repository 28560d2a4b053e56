/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One recording: open the BPF object, choose families, load, attach, drain into
 * the trace, stop. Commands use the calls below; the struct is for the files of
 * this directory.
 */
#ifndef SONDE_RECORD_SESSION_H
#define SONDE_RECORD_SESSION_H

#include <signal.h>
#include <sys/types.h>

#include "attach/attacher.h"
#include "kernel/features.h"
#include "kernel/probes.h"
#include "process/mmaps.h"
#include "record/family.h"
#include "trace/writer.h"

struct session_args {
	const char *families; /* -t, NULL: the default set */
	const char *const *options; /* "cuda=all", NULL-terminated */
	const u32 *pids; /* -p */
	u32 n_pids;
	const char *const *comms; /* --comm: shell patterns */
	u32 n_comms;
	const char *const *cgroups; /* --cgroup: paths */
	u32 n_cgroups;
	bool one_user; /* --scope user: */
	u32 user; /* only this one's processes */
	bool trusted_files; /* no probes in files that belong neither to root nor to the user of a process that maps them */
	bool no_args; /* command lines and paths stay out of the trace */
	bool remote_files; /* files on file systems that are served remotely are examined too */
	/* Not 0: the user wants the end. NULL: it is not known. */
	const volatile sig_atomic_t *stop;
	bool debuginfod; /* ask servers for debug files of what was stripped */
	pid_t command_pid; /* the process of `-- CMD`, one of pids; 0: none */
	const char *command; /* sonde's own command line, for the trace */
	/* Each record as it is drained (--print), texts before their first use; NULL: none. */
	void (*print)(const struct schema *schema, const void *record, u32 size, void *arg);
	void *print_arg;
};

struct session;

/* All: 0 or negative errno with a message that says what, which object, why and what to do. */
/* Chooses, loads the programs; nothing is attached yet. */
int session__open(struct session **out, const struct session_args *args, char *err, size_t len);
/* Writes the trace's head into fd; -1: there is no trace, records go to `print` alone. */
int session__create(struct session *s, int fd, char *err, size_t len);
/* Attaches; tracing runs when it returns. */
int session__start(struct session *s, char *err, size_t len);
/* To the process of `-- CMD`, which this one may not signal any more when it has given up its privileges. */
int session__signal(struct session *s, pid_t pid, int sig);
/* Waits at most timeout_ms for something to do and does it. */
int session__poll(struct session *s, int timeout_ms, char *err, size_t len);
/* Have all -p targets ended? */
bool session__targets_ended(const struct session *s);
/* Detaches, writes what is still open, the losses and the costs, and ends the file. */
int session__stop(struct session *s, enum end_reason reason, char *err, size_t len);
void session__free(struct session *s);

/* For the summary at the end and for messages meanwhile. */
struct session_status {
	u64 events, bytes, lost, hits;
	u64 skipped_hits; /* of the hits: in processes that the filter leaves out */
	bool cut_off; /* the file could not be written to the end */
	u64 traced; /* events of targets, not about the trace itself */
	u64 at_tracepoints; /* of these, those that kernel tracepoints made: not among the hits */
	u64 live_ns; /* the traced time: from when all was attached to when detaching began, or to now */
	u64 wall_ns; /* the same, with detaching: what the costs refer to */
	u64 cpu_ns, probes_ns;
	bool wants_objects; /* some of the families probe libraries */
	u32 objects; /* probed */
	u32 not_attached; /* requested things that could not be attached: exit status 3 */
};
void session__status(struct session *s, struct session_status *out);

/* What was lost, of one family, reason and object together: as the trace has it. */
struct session_loss {
	u16 family, object;
	enum loss_reason reason;
	u64 count, first, last;
	bool outside; /* as in struct loss of model/losses.h */
	u64 recorded; /* events of the family that were recorded; of core, of all families */
	const char *family_name;
	const char *path; /* of the object; NULL: none */
	char *forgotten; /* its path if the object is not among those that are known any more */
};
/* Calls fn for each, by first appearance. The traced time is from live to stop, times count from start. */
void session__each_loss(struct session *s, void (*fn)(const struct session_loss *l, void *arg), void *arg);
/* The moments that reports of the trace count from, in which its figures lie: CLOCK_MONOTONIC ns */
struct session_times {
	u64 start, live, stop;
};
struct session_times session__times(const struct session *s);
/* Messages about what could not be attached, oldest first; NULL: no more. malloc'ed. */
char *session__next_warning(struct session *s);

#endif
