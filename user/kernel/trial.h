/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Empty programs on a function of sonde's own, to find out what this kernel does with them. */
#pragma once

#include "core/types.h"

#include <sys/types.h>

struct trial {
	int file, prog, link;
};

/*
 * The probed functions, one for each trial: closing a link takes 40 ms, and the next trial must not probe the same
 * function meanwhile.
 */
enum trial_target { TRIAL_MULTI, TRIAL_SESSION, TRIAL_RETURN };
extern void (*const trial__targets[])(void);

/* Loads an empty program: returns a descriptor or negative errno. */
int trial__load(u32 attach_type);
/* Attaches it to a function in one process; returns: to its return. Returns 0 or negative errno. */
int trial__open(struct trial *t, enum trial_target target, u32 attach_type, pid_t pid, bool returns);
void trial__close(struct trial *t);

/*
 * Does a process survive the return from a probed function while a seccomp filter allows it only to exit? From Linux
 * 6.11 on the return makes a system call (uretprobe, arch/x86/kernel/uprobes.c), for which a filter may kill the
 * process; later kernels exempt it. With `session` the probe is a session link, else a multi link on returns. The
 * caller closes the trial.
 */
bool trial__return(struct trial *t, bool session);
