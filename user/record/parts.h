/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of a recording, for the files of user/record/. Each part is a struct of the header that is named here. Only
 * the files beside that header read or change its fields (`make lint` checks this); the others call its functions.
 */
#pragma once

#include "kernel/embedded.h"
#include "record/attach/site_links.h"
#include "record/attach/slices.h"
#include "record/capture.h"
#include "record/control.h"
#include "record/discover/hung.h"
#include "record/drain/drain.h"
#include "record/hosts.h"
#include "record/load/load.h"
#include "record/load/refused.h"
#include "record/memory.h"
#include "record/meters.h"
#include "record/own_tids.h"
#include "record/select/filter.h"
#include "record/select/targets.h"
#include "record/session.h"
#include "record/shims.h"
#include "record/suspension.h"
#include "record/warnings.h"

struct session {
	const struct session_args *args;
	struct features features; /* of this kernel */

	/* which programs run */
	struct embedded embedded;
	struct load load;
	struct refused refused;
	struct hosts hosts;

	/* of which processes */
	struct targets targets;
	struct filter filter;

	/* the processes of sonde with other rights */
	struct attacher *attacher; /* has the privileges and the links */
	struct examiner *examiner; /* parses files: record/examine/ */

	/* in record/discover/: files with code */
	struct mmaps *mmaps;
	struct objects *objects;
	struct preattach *preattach; /* libraries on disk that are still to be probed; NULL: none */
	pid_t searcher; /* the child that searched for them, until it has been waited for; 0: none */
	struct shares *shares;
	struct hung hung;
	struct remote_files *remote; /* files left out since the last warning about them; NULL: none */

	/* in record/attach/: their probes */
	struct site_links site_links;
	struct slices slices;
	struct suspension suspension;
	struct shims shims;
	struct own_tids own_tids;
	struct capture capture;
	struct control control;

	/* values that no probe records */
	struct meters meters;

	/* in record/drain/ and record/stacks/: what the probes record */
	struct drain drain;
	struct losses *losses;
	struct stack_records *stacks;
	struct python_known *python;
	struct native *native; /* NULL: no native stack was requested yet */
	struct task_samples *tasks; /* NULL: no Python process was seen */
	struct trace_writer *writer;
	int write_error; /* the first failed write */

	/* the recording as a whole */
	int epoll_fd;
	struct {
		u64 head; /* CLOCK_MONOTONIC ns of the trace's head */
		s64 offset; /* BPF's CLOCK_MONOTONIC minus this process's: not 0 in a time namespace */
		u64 started; /* ns: when everything found at the start was attached */
		u64 stopped; /* ns: end of the traced time, when detaching begins; 0: not yet */
		u64 cpu_at_start; /* ns of CPU time for loading and attaching */
		u64 next_tick, next_second;
	} time;
	struct memory memory;
	struct warnings warnings;
	u32 titles_read; /* of peers */
	u32 not_attached; /* requested things that could not be attached */
};

/*
 * Loads all programs of the families for a trial (try_families.h), which ends with its process. Attaches and records
 * nothing. *out is NULL only without memory.
 */
int session__open_trial(struct session **out, const struct session_args *args, const struct features *f, char *err,
			size_t len);
/*
 * In privileged.c: runs the last operations for which this process needs privileges. Afterwards it reads data of
 * targets, and requests from the attacher what needs privileges. Of /proc it reads only the parents of processes before
 * it drops its privileges, because the mount option `hidepid` hides these from a process without privileges.
 */
int privileged__start(struct session *s, char *err, size_t len);
/* Returns whether the user wants to stop. Steps that take long are then skipped. */
bool session__is_stopping(const struct session *s);
