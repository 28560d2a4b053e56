/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Executable file mappings read from /proc, without BPF: for `doctor` on a machine where BPF does not work. */
#pragma once

#include "process/process.h"

/*
 * Calls fn for each executable file mapping of each process that can be read; dev and ino are those of
 * /proc/PID/maps. Returns how many processes could not be read, or negative errno.
 */
int procs__each_mapping(void (*fn)(const struct mapping *m, void *arg), void *arg);

/* The same for one process: returns 0 or negative errno. */
int procs__each_mapping_of(u32 pid, void (*fn)(const struct mapping *m, void *arg), void *arg);
