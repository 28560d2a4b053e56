/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One recording: open the BPF object, choose families, load, attach, drain into the trace, stop. Commands use the
 * functions below; the struct is internal to this directory.
 */
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "attach/attacher.h"
#include "core/capture.h"
#include "core/schedule.h"
#include "kernel/features.h"
#include "kernel/probes.h"
#include "process/mmaps.h"
#include "record/family.h"
#include "trace/writer.h"

struct session_args {
	const char *families; /* -t; NULL: the default set */
	const char *const *options; /* "cuda=all", NULL-terminated */
	const u32 *pids; /* -p */
	u32 n_pids;
	const char *const *comms; /* --comm: shell patterns */
	u32 n_comms;
	const char *const *cgroups; /* --cgroup: paths */
	u32 n_cgroups;
	bool one_user; /* --scope user: record only the processes of `user` */
	u32 user;
	/*
	 * --trusted-files: no probes in files that belong neither to root nor to the user of a process that maps them
	 */
	bool trusted_files;
	bool no_args; /* leave command lines and paths out of the trace */
	bool no_source; /* leave source text out of the trace */
	bool remote_files; /* also examine files on remote file systems */
	/* Not 0: the user wants to stop. May be NULL. */
	const volatile sig_atomic_t *stop;
	const struct step_schedule *schedule; /* --schedule; NULL: none */
	const char *step; /* --step: the name of the ranges that end steps; NULL: not given */
	const struct capture_range *step_range; /* the same for ranges of NVTX: --step nvtx:NAME@DOMAIN */
	const struct capture_range *capture; /* --capture-range; NULL: not given */
	bool start_paused;
	u64 duration; /* -d, ns from when tracing is live: the traced time has this length; 0: until stopped */
	/* --cost-limit: the share of the processes' CPU time that families sched, sample and gil may take; 0: none */
	double cost_limit;
	pid_t command_pid; /* the process of `-- CMD`, one of pids; 0: none */
	const char *command; /* sonde's own command line, for the trace */
	/* Called with each record as it is drained (--print), texts before their first use; NULL: none. */
	void (*print)(const struct schema *schema, const void *record, u32 size, void *arg);
	void *print_arg;
	/* Called with a file's path, which is untrusted, before it is probed while tracing is not live yet; or NULL */
	void (*attaching)(const char *path);
};

struct session;

/* These functions return 0, or negative errno with a message that says what, which object, why and what to do. */
/* Chooses and loads the programs; nothing is attached yet. */
int session__open(struct session **out, const struct session_args *args, char *err, size_t len);
/* Writes the trace's head into fd; -1: there is no trace, and records only go to `print`. */
int session__create(struct session *s, int fd, char *err, size_t len);
/* Attaches; tracing is running when it returns. */
int session__start(struct session *s, char *err, size_t len);
/*
 * Sends a signal to the process of `-- CMD`, which this process may not signal itself after it has dropped its
 * privileges.
 */
int session__signal(struct session *s, pid_t pid, int sig);
/* Waits at most timeout_ms for records and other events, and handles them. */
int session__poll(struct session *s, int timeout_ms, char *err, size_t len);
/*
 * Pauses or resumes the recording: expensive probes are detached meanwhile, and records of targets discarded. Pausing
 * twice is pausing once.
 */
void session__set_paused(struct session *s, bool paused);
/* Returns whether all cycles of the schedule are over in each process that has begun it. */
bool session__schedule_ended(const struct session *s);
/* Returns whether all requested capture ranges have ended in each process that has begun one. */
bool session__captures_ended(const struct session *s);
/* Returns whether all -p targets have ended. */
bool session__targets_ended(const struct session *s);
/* Detaches, writes what is still open, the losses and the costs, and ends the file. */
int session__stop(struct session *s, enum end_reason reason, char *err, size_t len);
void session__free(struct session *s);

/* For the summary at the end and for status lines. */
struct session_status {
	u64 events, bytes, lost, hits;
	u64 skipped_hits; /* of the hits: those in processes that the filter excludes */
	bool cut_off; /* the file could not be written to the end */
	u64 traced; /* events of targets, without those about the trace itself */
	u64 at_tracepoints; /* of these, those from kernel tracepoints, which are not counted as hits */
	u64 paused_ns; /* part of live_ns in which the recording was paused */
	bool is_paused; /* now */
	u64 unmeasured_ns; /* the part without paused_ns that --cost-limit left out of families sched and sample */
	double cost_limit; /* the share of --cost-limit; 0: none */
	u64 live_ns; /* the traced time: from when all was attached to when detaching began, or to now */
	u64 wall_ns; /* the same including detaching: the costs refer to this */
	u64 cpu_ns, probes_ns;
	bool needs_objects; /* some of the families probe libraries */
	u32 objects; /* number of probed objects */
	u32 not_attached; /* requested things that could not be attached: exit status 3 */
	bool none_usable; /* no chosen family has anything to read on this machine, as warnings have said */
};
void session__status(struct session *s, struct session_status *out);

/* The losses with one family, reason and object, as in the trace. */
struct session_loss {
	u16 family, object;
	enum loss_reason reason;
	u64 count, first, last;
	bool outside; /* as in struct loss of model/losses.h */
	u64 recorded; /* recorded events of the family; for core, of all families */
	const char *family_name;
	const char *path; /* of the object; NULL: none */
	char *evicted_path; /* of an evicted object; NULL: the object is still known */
};
/* Calls fn for each, in order of first appearance. The traced time is from live to stop; times count from start. */
void session__each_loss(struct session *s, void (*fn)(const struct session_loss *l, void *arg), void *arg);
/* The times that reports of the trace count from, and between which their figures lie: CLOCK_MONOTONIC ns. */
struct session_times {
	u64 start, live, stop;
};
struct session_times session__times(const struct session *s);
/* Messages about what could not be attached, oldest first; NULL: no more. malloc'ed. */
char *session__next_warning(struct session *s);
