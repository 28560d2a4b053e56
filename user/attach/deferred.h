/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that are loaded while the recording starts (struct program, `deferred`).
 *
 * The kernel's verifier takes 1 to 15 ms of CPU time for a program, and half of the programs are not needed before a
 * process maps a certain library or before the recording ends. A child of the attacher (sonde-loader) loads them
 * meanwhile on another CPU. It is forked before the attacher drops its privileges, reads nothing but the programs that
 * libbpf has relocated, sends the descriptors to the attacher and ends.
 */
#pragma once

#include "core/event.h"
#include "kernel/probes.h"

struct deferred;

/* A deferred program that the kernel refused. */
struct deferred_refusal {
	u32 program; /* index in struct probes */
	s32 error; /* negative errno */
	char why[248]; /* "": the error says enough */
};

#define DEFERRED_REFUSALS_MAX 200

/* Starts the child if there are deferred programs. Returns 0 or negative errno; *out is NULL if there are none. */
int deferred__start(struct deferred **out, const struct probes *probes);
/* The socket of the child; -1: there is none. */
int deferred__fd(const struct deferred *d);
/*
 * Waits until the child has loaded all programs that are deferred so, or less long, and puts them in place. Returns the
 * number of refused programs, each once, of which it writes at most DEFERRED_REFUSALS_MAX.
 */
u32 deferred__collect(struct deferred *d, enum deferral deferred, struct deferred_refusal *refusals);
/*
 * Counts how often the kernel skipped deferred programs because a program ran on that CPU already, by family. Only this
 * process has their descriptors.
 */
void deferred__misses(const struct deferred *d, u64 misses[FAMILY_MAX]);
/* NULL-safe */
void deferred__free(struct deferred *d);
