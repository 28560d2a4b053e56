/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the files of cupti-shim/. docs/gpu.md explains how they work together. */
#pragma once

#include <time.h>

#include "clock.h"
#include "core/shim.h"
#include "cupti.h"

#define SHIM_EXPORT __attribute__((visibility("default")))

/* control.c: requests of tracers */

/* Remembers the shim's file; after a fork the child maps its page of control again from it. */
void control__init(void);
/* How often a tracer has come, and how often one has left, each for some groups. */
struct control_changes {
	uint64_t arrivals, departures;
};
/* Groups of records that tracers ask for now, as bits. */
uint32_t control__requested(struct control_changes *changes);
/* Runs in the child of a fork. */
void control__after_fork(void);

/* buffers.c: CUPTI's buffers */

#define BUFFER_BYTES (1 << 20)
#define BUFFERS_MAX  32 /* SONDE_CUPTI_BUFFERS sets fewer, for tests */

/* The number of records in a buffer. */
typedef uint64_t (*buffers__count)(uint8_t *buffer, size_t valid);

void buffers__requested(uint8_t **buffer, size_t *size, size_t *max_records);
void buffers__completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
/* The next buffer that CUPTI has returned, oldest first; NULL: none. */
uint8_t *buffers__take(size_t *valid);
/* The buffer may be handed out again. */
void buffers__give_back(uint8_t *buffer);
/* What was discarded since the last call: records, and bytes whose records could not be counted. false: nothing. */
bool buffers__discarded(uint64_t *records, uint64_t *bytes);
void buffers__count_by(buffers__count count);
/* Unmaps the buffers that are not in use. */
void buffers__release(void);
void buffers__after_fork(void);

/* out.c: batches at the probe site */

/* Memory for a record of this kind with `body` bytes after its header, zeroed; NULL: too large. */
void *out__record(enum shim_kind kind, size_t body, uint64_t start, uint64_t end, uint32_t tid);
/* The same with a text after the body. */
void *out__record_text(enum shim_kind kind, size_t body, uint64_t start, uint64_t end, const char *text);
/* Hands over the waiting records. */
void out__flush(void);
uint64_t out__handed_over(void);
void out__reset(void);

/* names.c: texts and descriptions that each tracer gets once */

/* The id of a kernel's name, which is sent before its first use. */
uint64_t names__id(const char *text);
/* Stores a device, context or stream, to be sent again to the next tracer. */
void names__keep(enum shim_kind kind, const void *body, size_t size, uint64_t key);
/* Sends everything to a tracer that has just come. */
void names__report_all(void);
void names__reset(void);

/* records.c: converts CUPTI's records */

struct records {
	const struct cupti *cupti;
	const struct clock *clock;
	uint64_t now; /* CLOCK_MONOTONIC */
	bool no_threads; /* CUPTI does not use the kernel's thread ids */
	uint64_t n_invalid; /* records that were invalid */
	uint64_t invalid_bytes; /* bytes that were lost behind one */
};

/*
 * The record after *a (NULL: the first). Returns 1; 0: there is none; -1: CUPTI's data is invalid, and *bytes from
 * there on are lost.
 */
int records__next(const struct cupti *c, uint8_t *buffer, size_t valid, struct cupti_activity **a, size_t *bytes);
/* Hands over all records of a buffer. */
void records__convert(struct records *r, uint8_t *buffer, size_t valid);

/* activities.c: CUPTI itself, under one lock */

struct activities {
	struct cupti cupti;
	cupti_subscriber subscriber;
	uint32_t enabled; /* groups that are enabled, as bits */
	bool in_init; /* CUDA is being initialized: there are no graphs yet */
	uint32_t thread_id_type;
	bool no_threads; /* CUPTI can't be made to use the kernel's thread ids */
	uint32_t clock_result; /* of the last read */
	struct clock clock;
	char why[256]; /* the first thing that CUPTI refused */
	uint32_t refused; /* refusals since that was reported */
};

/* Finds CUPTI and subscribes. Returns 0, -EAGAIN (no libcuda yet) or another negative errno with a->why. */
int activities__start(struct activities *a);
/* Enables and disables groups. Refusals of CUPTI are reported once. */
void activities__set(struct activities *a, uint32_t groups);
/* Hands over the records that CUPTI has ready; forced: all of them, even unfinished ones. */
void activities__flush(struct activities *a, bool forced);
/* Unsubscribes. a->why has what CUPTI refused. */
void activities__stop(struct activities *a);

/* Gives a tracer a moment to request a group of records, and begins to record what is requested. */
void shim__await(enum shim_group group);
/* A number from the environment, or def. */
uint64_t shim__setting(const char *name, uint64_t def);

/* CLOCK_MONOTONIC, ns */
static inline uint64_t shim__now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* The time in so many ms, as sem_timedwait() takes it. */
static inline struct timespec shim__in_ms(long ms)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += ms % 1000 * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	return t;
}
