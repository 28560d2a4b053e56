/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of cupti-shim/ share. docs/gpu.md says how they work together. */
#ifndef SHIM_SHIM_H
#define SHIM_SHIM_H

#include <time.h>

#include "clock.h"
#include "core/shim.h"
#include "cupti.h"

#define SHIM_EXPORT __attribute__((visibility("default")))

/* control.c: what a tracer asks for */

/* Remembers which file the shim is; at a fork the child maps its page of control anew from it. */
void control__init(void);
/* How often a tracer has come and one has left, each for some groups. */
struct control_changes {
	uint64_t came, left;
};
/* Groups that are wanted now, bits. */
uint32_t control__wanted(struct control_changes *changes);
/* In the child of a fork. */
void control__after_fork(void);

/* buffers.c: CUPTI's buffers */

#define BUFFER_BYTES (1 << 20)
#define BUFFERS_MAX  32 /* fewer by SONDE_CUPTI_BUFFERS, for tests */

/* How many records a buffer holds. */
typedef uint64_t (*buffers__count)(uint8_t *buffer, size_t valid);

void buffers__requested(uint8_t **buffer, size_t *size, size_t *max_records);
void buffers__completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
/* The next buffer that CUPTI has given back, oldest first; NULL: none. */
uint8_t *buffers__take(size_t *valid);
/* It may be handed out again. */
void buffers__give_back(uint8_t *buffer);
/* What was thrown away since the last call: records, and bytes of which that is not known. false: nothing. */
bool buffers__discarded(uint64_t *records, uint64_t *bytes);
void buffers__count_by(buffers__count count);
/* Unmaps those without a holder. */
void buffers__release(void);
void buffers__after_fork(void);

/* out.c: batches at the probe site */

/* Room for a record of this kind with `body` bytes behind its head, zeroed; NULL: too large. */
void *out__record(enum shim_kind kind, size_t body, uint64_t start, uint64_t end, uint32_t tid);
/* The same with a text behind the body. */
void *out__record_text(enum shim_kind kind, size_t body, uint64_t start, uint64_t end, const char *text);
/* Hands over what waits. */
void out__flush(void);
uint64_t out__handed_over(void);
void out__reset(void);

/* names.c: texts and descriptions that each tracer gets once */

/* A kernel's name as a number; reported before its first use. */
uint64_t names__id(const char *text);
/* A device, context or stream is kept, to be reported again to the next tracer. */
void names__keep(enum shim_kind kind, const void *body, size_t size, uint64_t key);
/* A tracer has come: all is reported to it. */
void names__report_all(void);
void names__reset(void);

/* records.c: from CUPTI's records to ours */

struct records {
	const struct cupti *cupti;
	const struct clock *clock;
	uint64_t now; /* CLOCK_MONOTONIC */
	bool no_threads; /* CUPTI's threads are not the kernel's */
	uint64_t odd; /* records that made no sense */
	uint64_t odd_bytes; /* and what is lost behind one */
};

/* The record behind *a (NULL: the first). 1, 0: there is none; -1: CUPTI says nonsense, *bytes from there on are lost. */
int records__next(const struct cupti *c, uint8_t *buffer, size_t valid, struct cupti_activity **a, size_t *bytes);
/* Hands over all records of a buffer. */
void records__convert(struct records *r, uint8_t *buffer, size_t valid);

/* activities.c: CUPTI itself, under one lock */

struct activities {
	struct cupti cupti;
	cupti_subscriber subscriber;
	uint32_t on; /* groups, bits */
	uint32_t thread_id_type;
	bool no_threads; /* CUPTI can't be had to number threads as the kernel does */
	uint32_t clock_result; /* of the last read */
	struct clock clock;
	char why[256]; /* the first thing that CUPTI refused */
	uint32_t refused; /* how many things since that was reported */
};

/* Finds CUPTI and subscribes. 0, -EAGAIN (no libcuda yet) or another negative errno with a->why. */
int activities__start(struct activities *a);
/* Enables and disables what differs. What CUPTI refuses is reported once. */
void activities__set(struct activities *a, uint32_t groups);
/* What CUPTI has ready is handed over; forced: all of it, also what is not finished. */
void activities__flush(struct activities *a, bool forced);
/* Lets go of CUPTI. What it refused then is in a->why. */
void activities__stop(struct activities *a);

/* A number of the environment, or def. */
uint64_t shim__setting(const char *name, uint64_t def);

/* CLOCK_MONOTONIC, ns */
static inline uint64_t shim__now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

#endif
