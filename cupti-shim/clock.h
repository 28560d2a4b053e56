/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Converts CUPTI's clock to CLOCK_MONOTONIC. A read of CUPTI's clock between two reads of CLOCK_MONOTONIC bounds the
 * difference of the clocks, however long the reads take. The rate between two clocks hardly changes, so the bounds of
 * the last seconds also bound the present: the highest and the lowest line that fit between them are computed
 * (clock_bounds.c). A time between two samples is interpolated, with an error no larger than that of the worse
 * sample.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_SAMPLES 128 /* samples that are stored */
#define CLOCK_READS   512 /* reads per sample, at most; once the rate is known a few are enough */
#define CLOCK_EVERY   1000000000ULL /* ns between permanent samples */
#define CLOCK_BOUNDS  48

struct clock_source {
	uint64_t (*host)(void *arg); /* CLOCK_MONOTONIC, ns */
	uint64_t (*device)(void *arg); /* CUPTI's, ns; 0: it failed */
	void *arg;
};

struct clock_sample {
	uint64_t device, host; /* both at the same moment */
	uint64_t error; /* ns */
	int64_t drift; /* parts in 10^9, over the last seconds */
	uint32_t reads;
	bool restarted;
};

/* At a certain device time the host time was between device + low and device + high. */
struct clock_bound {
	uint64_t device;
	double low, high; /* ns, relative to the first bound's low */
};

/* The bounds of the last seconds, oldest first. */
struct clock_bounds {
	struct clock_bound list[CLOCK_BOUNDS];
	uint32_t n;
	int64_t base; /* host time minus device time, added to low and high */
};

struct clock {
	struct clock_sample list[CLOCK_SAMPLES]; /* ring buffer */
	uint32_t n, next;
	uint64_t last_permanent; /* host time of the last permanent sample */
	struct clock_bounds bounds;
};

/* Takes a sample. false: the device's clock could not be read. */
bool clock__sample(struct clock *c, const struct clock_source *source);
const struct clock_sample *clock__last(const struct clock *c);
/* A device time as CLOCK_MONOTONIC; 0 stays 0, and without a sample the result is 0. */
uint64_t clock__host(const struct clock *c, uint64_t device);

/* In clock_bounds.c: the bounds at a later device time. false: they contradict each other. */
bool bounds__at(const struct clock_bounds *b, uint64_t device, double *low, double *high);
/* By how much the host's clock advances more than the device's, per ns: between least and most. */
void bounds__rate(const struct clock_bounds *b, double *least, double *most);
void bounds__add(struct clock_bounds *b, uint64_t device, double low, double high);
