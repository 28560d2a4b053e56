/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From CUPTI's clock to CLOCK_MONOTONIC. A read of CUPTI's clock between two of
 * CLOCK_MONOTONIC bounds where the two lie to one another, whatever took its time
 * in between. Two clocks run against each other at a rate that hardly changes, so
 * the bounds of the last seconds bound the present too: of all lines that fit between
 * them the highest and the lowest are looked for (clock_bounds.c). What lies between
 * two samples is interpolated, with an error no larger than that of the worse one.
 */
#ifndef SHIM_CLOCK_H
#define SHIM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_SAMPLES 128 /* kept */
#define CLOCK_READS   512 /* brackets a sample, at most; once the rate is known a few are enough */
#define CLOCK_EVERY   1000000000ULL /* ns between samples that are kept */
#define CLOCK_BOUNDS  48

struct clock_source {
	uint64_t (*host)(void *arg); /* CLOCK_MONOTONIC, ns */
	uint64_t (*device)(void *arg); /* CUPTI's, ns; 0: it failed */
	void *arg;
};

struct clock_sample {
	uint64_t device, host; /* the same moment */
	uint64_t error; /* ns */
	int64_t drift; /* parts in 10^9, over the last seconds */
	uint32_t reads;
	bool restarted;
};

/* At a device time it was no earlier than device + low, and no later than device + high. */
struct clock_bound {
	uint64_t device;
	double low, high; /* ns, against the first one's low */
};

/* The bounds of the last seconds, oldest first. */
struct clock_bounds {
	struct clock_bound list[CLOCK_BOUNDS];
	uint32_t n;
	int64_t base; /* host less device: what low and high are against */
};

struct clock {
	struct clock_sample list[CLOCK_SAMPLES]; /* a ring */
	uint32_t n, next;
	uint64_t kept; /* the last sample that is not to be replaced, by host time */
	struct clock_bounds bounds;
};

/* Takes a sample. false: the device's clock could not be read. */
bool clock__sample(struct clock *c, const struct clock_source *source);
const struct clock_sample *clock__last(const struct clock *c);
/* A device time as CLOCK_MONOTONIC; 0 stays 0, and without a sample all is 0. */
uint64_t clock__host(const struct clock *c, uint64_t device);

/* clock_bounds.c: what is known of a later device time. false: the bounds contradict each other. */
bool bounds__at(const struct clock_bounds *b, uint64_t device, double *low, double *high);
/* How much later the host's clock gets each ns of the device's: between least and most. */
void bounds__rate(const struct clock_bounds *b, double *least, double *most);
void bounds__add(struct clock_bounds *b, uint64_t device, double low, double high);

#endif
