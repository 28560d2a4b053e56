/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loads the opened BPF object into the kernel, several programs at a time.
 *
 * libbpf loads one program after the other, and fails as a whole at the first program that the kernel refuses. Nearly
 * all of the time is spent in the kernel's verifier, which runs on any number of CPUs in parallel. So libbpf
 * relocates the programs but loads a stand-in of two instructions for each; several threads then load the real ones,
 * whose descriptors replace those of the stand-ins.
 */
#pragma once

#include "kernel/probes.h"
#include "kernel/refused_maps.h"

struct sonde_bpf;

/*
 * Registers the sections of sonde's programs with libbpf. Call it before any object is opened. Returns 0 or negative
 * errno.
 */
int loader__register(void);
/*
 * Loads the object's maps and its programs with `enabled`, except for those with `deferred`. A program that the kernel
 * refuses gets load_error and refusal, and `enabled` is cleared; so does a program that uses one of the refused maps.
 * Returns 0, or negative errno if loading failed as a whole: libbpf's log has the reason. The object can't be loaded a
 * second time.
 */
int loader__load(struct sonde_bpf *skel, struct probes *probes, const struct refused_maps *refused);

/*
 * After loader__load a deferred program has the descriptor of its stand-in, and this module keeps its instructions. A
 * child of this process loads it with the next function, while the recording starts, and passes the descriptor on.
 */
/* fd: of the loaded program, closed after the call; or negative errno, and p->refusal has the reason or is NULL. */
typedef void deferred_program_fn(const struct program *p, int fd, void *arg);
/* Loads the programs that are deferred so, and calls fn for each. */
void loader__load_deferred(enum deferral deferred, deferred_program_fn *fn, void *arg);
/* The descriptors of maps and types that loading them needs, at most max. Returns their number. */
u32 loader__deferred_needs(int *fds, u32 max);
/* Frees what is kept of the deferred programs. */
void loader__forget_deferred(void);
