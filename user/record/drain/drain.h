/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Moves records from the rings into the trace. */
#pragma once

#include "core/event.h"

struct rings;
struct session;

/* Copied records in the order of the rings: a u64 with the size, then the record, padded to 8 bytes. */
struct copied_records {
	char *bytes;
	size_t used, size;
	size_t handled; /* bytes of the records that were handled */
};

/* Records of a family that the worker dropped and did not count yet */
struct dropped_records {
	u64 n, first, last;
};

/* From drain__open(), in the worker alone. */
struct drain {
	struct rings *rings;
	u64 ring_size; /* bytes of data of each ring */
	bool has_more; /* drain__has_more() */
	bool is_handling; /* a record is being handled */
	u64 n_complete; /* how often all rings were read to their end and each record was handled */
	u64 next_copy; /* ns */
	struct copied_records incoming, current; /* those of `current` are handled first */
	struct dropped_records dropped[FAMILY_MAX]; /* for lack of memory */
	u64 traced; /* records of targets, without those about the trace itself */
	u64 recorded[FAMILY_MAX]; /* by family id */
	u64 at_tracepoints; /* records in `traced` of families that only use tracepoints */
};

/* Called before loading: sets the size of the rings. 0 or negative errno */
int drain__configure(struct session *s);
int drain__open(struct session *s, char *err, size_t len);
/* In a forked process, which must not read events. */
void drain__forget(struct drain *d);
/* Returns whether there are more records: in the rings, or copied and not handled. */
bool drain__has_more(const struct drain *d);
void drain__append(struct session *s, const void *record, u32 size);
void drain__rings(struct session *s);
/* Copies records from the rings; they are handled later. Call it while an answer is awaited. */
void drain__copy(struct session *s);
/* The same, also if the rings were just read. */
void drain__copy_now(struct session *s);
/* As drain__copy(), of a struct session: for message_wait.idle and the like. */
void drain__on_idle(void *session);
/* Handles all records that are in the rings now, or as many as it can within a second. */
void drain__all(struct session *s);
void drain__last(struct session *s);
void drain__close(struct drain *d);
