/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the events of a family mean to those who read traces: what a thread waits for in them, and how they are drawn. A
 * family states it in its `*_events.c` (bpf/probes/disk/disk_events.c). A span that no table names is a call of a
 * library, and an event that no table names is drawn on its thread.
 */
#pragma once

#include "model/activity_cause.h"
#include "schema/schema.h"
#include "util/registry.h"

/* Of open spans, the one of highest rank explains best why a thread does not run, and of equal ranks the last begun. */
#define RANK_CALL 6 /* of calls of libraries */
#define RANKS	  11 /* above the highest */

struct event_meaning {
	const char *event; /* its name, or how its name begins: "lock_*"; the first of a family that fits counts */
	/* of a span in which a thread waits */
	enum activity_cause cause; /* ACTIVITY_CUDA and ACTIVITY_SYSCALL: the span's name decides */
	u16 rank; /* below RANKS */
	bool is_uninterruptible; /* only an uninterruptible thread waits for it */
	const char *reason; /* "disk"; NULL: the span's own name */
	const char *library; /* "CUDA": whose calls the spans are; NULL: of another library, or no calls */
	const char *report; /* "cuda-api": the report that shows them; NULL: none does */
	bool is_copy; /* they copy memory of GPUs */
	/* of others */
	bool is_no_wait; /* a sum or a lifetime, in which a thread may do anything, or the work of a device */
	bool is_beside; /* the thread may go on while the span is open */
	bool is_part; /* it only describes others, such as the work of a GPU, which is drawn as a whole */
	const char *lane; /* its spans cross those of calls: they are drawn beside the thread, by this name */
};

struct family_meaning {
	const char *name; /* of the family */
	const struct event_meaning *events; /* ends with an entry without a name */
};

#define FAMILY_MEANING(ident) REGISTER(family_meaning, sonde_meanings, ident##_meaning)

/* Never NULL */
const struct event_meaning *meaning__of(const struct schema_event *e);
/* Returns the meaning of events whose calls the report shows; NULL: there are none. */
const struct event_meaning *meaning__of_report(const char *report);
