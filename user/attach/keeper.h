/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that owns the uprobe links.
 *
 * A process that is killed while it is inside the kernel putting probes in or
 * taking them out leaves breakpoints in its targets for ever: with SIGKILL
 * pending the kernel gives up on the rest ("uprobe: failed to unregister,
 * leaking uprobe", Linux 6.18). So both are done by a child that nobody has a
 * reason to kill. When sonde ends, in whatever way, the child's socket does too,
 * and it detaches in order and exits.
 */
#ifndef SONDE_ATTACH_KEEPER_H
#define SONDE_ATTACH_KEEPER_H

#include "attach/link.h"

struct keeper;

/* In a child that is in the kernel about probes: nothing that a terminal sends may end it in the middle. */
void keeper__ignore_signals(void);
/* Forks it: programs that it is to attach must be loaded before. 0 or negative errno. */
int keeper__start(struct keeper **out);
/* As links__attach. -EPIPE: the keeper is gone. */
int keeper__attach(struct keeper *k, const struct bpf_program *prog, enum attach_method method,
		   const struct link_sites *sites);
/* As links__drop. */
int keeper__drop(struct keeper *k, u32 object);
/* Tells it to detach and returns at once; its descriptor is readable when it has. */
void keeper__detach(struct keeper *k);
int keeper__fd(const struct keeper *k);
/* Waits until it has detached and ended. NULL-safe. */
void keeper__free(struct keeper *k);

#endif
