/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the opened BPF object to programs in the kernel, several at a time.
 *
 * libbpf loads one program after the other and gives up on all at the first that
 * the kernel refuses. Nearly all the time is the kernel's verifier's, which runs
 * on any number of CPUs. So libbpf relocates the programs and is made to load a
 * program of two instructions in place of each; the real ones are then loaded by
 * several threads, and their descriptors take the places of the others.
 */
#ifndef SONDE_KERNEL_LOADER_H
#define SONDE_KERNEL_LOADER_H

#include "kernel/probes.h"
#include "kernel/refused_maps.h"

struct sonde_bpf;

/* Has libbpf know the sections of sonde's programs. Before any object is opened. 0 or negative errno. */
int loader__register(void);
/*
 * Loads the object's maps and its programs with `enabled`. A program that the
 * kernel refuses gets load_error and refusal, and is not enabled any more; so does one that uses a map of those refused.
 * 0 or negative errno of all together: what libbpf says of it is in its log. After that the object can't be loaded again.
 */
int loader__load(struct sonde_bpf *skel, struct probes *probes, const struct refused_maps *refused);

#endif
