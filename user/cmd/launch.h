/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command of `record -- CMD ARGS`: a child that waits until the probes are
 * there before it runs CMD, so that its first instruction is traced.
 */
#ifndef SONDE_CMD_LAUNCH_H
#define SONDE_CMD_LAUNCH_H

#include "core/types.h"

#include <sys/types.h>

struct session;

#define EXIT_OWN_FAILURE  125 /* sonde's own, where the status is otherwise CMD's: as env(1) and timeout(1) have it */
#define EXIT_NOT_RUNNABLE 126
#define EXIT_NOT_FOUND	  127

struct launch {
	char **argv; /* NULL: no command was given */
	char program[4096]; /* its file */
	char shim[4096]; /* loaded into it by CUDA; "": none */
	pid_t pid; /* 0: none */
	struct session *session; /* traces it, and sends it signals where needed; NULL: none yet */
	int go; /* a byte written here lets it run */
	int failed; /* here it writes errno if it can't */
	bool ended;
	int status; /* what a shell would say: 128+N if signal N ended it */
	void **maps; /* ahead of it: see launch__map */
	u32 n_maps;
};

/* Is it there and may it be run? 0, or the exit status, with a message. */
int launch__find(struct launch *l, char **argv, char *err, size_t len);
/* Forks the child, which waits. Before signal handlers are set. 0 or negative errno. */
int launch__fork(struct launch *l);
/*
 * Maps the files that CMD will map, and takes them away again: what is mapped
 * when a recording starts has probes before anything of it runs.
 */
void launch__map(struct launch *l);
void launch__unmap(struct launch *l);
/* Lets it run. 0, or the exit status, with a message. */
int launch__go(struct launch *l, char *err, size_t len);
/* Passes a signal on. The only place that sends one. */
void launch__signal(struct launch *l, int sig);
/* Has it ended? wait: does not return before, but for a signal. */
bool launch__ended(struct launch *l, bool wait);
/* Ends a child that has not been let run. */
void launch__abandon(struct launch *l);

#endif
