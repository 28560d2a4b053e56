/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs that do nothing, put on a function of sonde's own, to see what this kernel does with them. */
#ifndef SONDE_KERNEL_TRIAL_H
#define SONDE_KERNEL_TRIAL_H

#include "core/types.h"

#include <sys/types.h>

struct trial {
	int file, prog, link;
};

/* Functions that are probed, one a trial: nothing else is on it while another's link is being closed, which takes 40 ms. */
enum trial_target { TRIAL_MULTI, TRIAL_SESSION, TRIAL_RETURN };
extern void (*const trial__targets[])(void);

/* A program that does nothing: a descriptor or negative errno. */
int trial__load(u32 attach_type);
/* Attaches it to a function in one process; returns: to its return. 0 or negative errno. */
int trial__open(struct trial *t, enum trial_target target, u32 attach_type, pid_t pid, bool returns);
void trial__close(struct trial *t);

/*
 * Does a process live on that returns from a probed function while a seccomp
 * filter allows it nothing but to exit? From Linux 6.11 the return goes through
 * a system call (uretprobe, arch/x86/kernel/uprobes.c), which filters may kill
 * for; later kernels let it pass. With `session` by a session link, else by a
 * multi link on returns. The trial is left to be closed.
 */
bool trial__return(struct trial *t, bool session);

#endif
