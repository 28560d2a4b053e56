/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command of `record -- CMD ARGS`: a child that runs CMD once the probes are attached, so that all of it is traced.
 */
#pragma once

#include "core/types.h"

#include <sys/types.h>

struct session;

#define EXIT_OWN_FAILURE  125 /* sonde failed; other statuses are CMD's, as with env(1) */
#define EXIT_NOT_RUNNABLE 126
#define EXIT_NOT_FOUND	  127

struct launch {
	char **argv; /* NULL: no command was given */
	char program[4096]; /* path of its file */
	char shim[4096]; /* path of the library that is loaded into it; "": none */
	unsigned int shim_needs; /* enum shim_need, or-ed */
	const char *functions; /* the Python functions to trace (cmd/functions.h); NULL: none */
	pid_t pid; /* 0: none */
	struct session *session; /* traces it, and sends it signals where needed; NULL: none yet */
	int start_pipe; /* pipe: a byte lets the child run CMD */
	int error_pipe; /* pipe: the child writes errno if it cannot run CMD */
	bool has_ended;
	int status; /* as in a shell: 128+N if signal N ended it */
	void **maps; /* mapped by launch__map */
	u32 n_maps;
};

/* Finds the program. Returns 0, or the exit status with a message if it is missing or cannot be run. */
int launch__find(struct launch *l, char **argv, char *err, size_t len);
/* Forks the child, which waits. Call it before signal handlers are set. Returns 0 or negative errno. */
int launch__fork(struct launch *l);
/* Maps the files that CMD will map, and unmaps them: a recording probes at its start what any process maps. */
void launch__map(struct launch *l);
void launch__unmap(struct launch *l);
/* Lets the child run CMD. Returns 0, or the exit status with a message. */
int launch__go(struct launch *l, char *err, size_t len);
/* Sends a signal to CMD; no other function does. */
void launch__signal(struct launch *l, int sig);
/* Has CMD ended? With wait, blocks until it has or a signal arrives. */
bool launch__ended(struct launch *l, bool wait);
/* Ends a child that was not let run. */
void launch__abandon(struct launch *l);
