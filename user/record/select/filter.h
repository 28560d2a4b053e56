/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* --comm, --cgroup and --scope user: passes the patterns to BPF, and newly selected processes to the families. */
#pragma once

#include "core/maps.h"
#include "record/select/cgroup.h"
#include "util/glob.h"
#include "util/recent.h"

struct session;

#define SELECTED_MAX 64

#define COMM_STEPS 15 /* TASK_COMM_LEN without its NUL */

struct filter {
	u32 need; /* enum process_flags that a process must have to be selected; 0: no filter */
	struct glob globs[COMM_GLOBS];
	u32 n_globs;
	struct cgroup_ref cgroups[FILTER_CGROUPS];
	u32 n_cgroups;
	/* newly selected processes, each once, which are passed on when the rings have been drained */
	struct selected {
		u32 pid;
		bool exec;
	} selected[SELECTED_MAX];
	u32 n_selected; /* more than SELECTED_MAX: all are passed on */
	u64 next_all; /* ns: earliest time */
	struct recent passed; /* pid: u64, time at which it was passed on, ns */
};

/* Called before loading: reads the arguments of the filters. */
int filter__open(struct session *s, char *err, size_t len);
void filter__close(struct filter *f);
/* Called before loading: sets read-only data. */
int filter__configure(struct session *s);
/* Called before the programs that follow renames and moves are attached: sets what they match. */
int filter__load(struct session *s);
/* Called once these programs run: adds the existing processes. */
int filter__seed(struct session *s);
/* Called while the rings are drained, so it only notes the process, for filter__follow(). */
void filter__note(struct filter *f, const struct event *e, u32 size);
void filter__follow(struct session *s);
/* Called once a second: an iterator finds changed users. A process that ends meanwhile may leave its entry behind. */
void filter__tick(struct session *s);
