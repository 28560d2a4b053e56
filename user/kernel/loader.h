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

struct sonde_bpf;

/*
 * Registers the sections of sonde's programs with libbpf. Call it before any object is opened. Returns 0 or negative
 * errno.
 */
int loader__register(void);
/*
 * Loads the object's maps and its programs with `enabled`. A program that the kernel refuses gets load_error and
 * refusal, and `enabled` is cleared.
 * Returns 0, or negative errno if loading failed as a whole: libbpf's log has the reason. The object can't be loaded a
 * second time.
 */
int loader__load(struct sonde_bpf *skel, struct probes *probes);
