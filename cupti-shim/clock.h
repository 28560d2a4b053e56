/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From CUPTI's clock to CLOCK_MONOTONIC. A read of CUPTI's clock between two of
 * CLOCK_MONOTONIC says where the two lie to one another, with an error of half the
 * bracket's width, whatever took its time in between; of many, what all agree on is
 * kept. Repeated, such samples also give the drift: what lies between two of them
 * is interpolated, and the error is no larger than that of the worse one, as far as
 * the drift is constant in between.
 */
#ifndef SHIM_CLOCK_H
#define SHIM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_SAMPLES 128 /* kept */
#define CLOCK_READS   64 /* brackets a sample, at most */
#define CLOCK_EVERY   1000000000ULL /* ns between samples that are kept */

struct clock_source {
	uint64_t (*host)(void *arg); /* CLOCK_MONOTONIC, ns */
	uint64_t (*device)(void *arg); /* CUPTI's, ns; 0: it failed */
	void *arg;
};

struct clock_sample {
	uint64_t device, host; /* the same moment */
	uint64_t error; /* ns */
	int64_t drift; /* parts in 10^9 since the sample before */
	uint32_t reads;
	bool restarted;
};

struct clock {
	struct clock_sample list[CLOCK_SAMPLES]; /* a ring */
	uint32_t n, next;
	uint64_t kept; /* the last sample that is not to be replaced, by host time */
};

/* Takes a sample. false: the device's clock could not be read. */
bool clock__sample(struct clock *c, const struct clock_source *source);
const struct clock_sample *clock__last(const struct clock *c);
/* A device time as CLOCK_MONOTONIC; 0 stays 0, and without a sample all is 0. */
uint64_t clock__host(const struct clock *c, uint64_t device);

#endif
