/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes a .sonde file (docs/format.md) in bounded memory; no record waits in it longer than a second. */
#pragma once

#include "schema/schema.h"

struct trace_writer;

/* What the first frame says about the machine and the run; NULL members are left out. */
struct trace_head {
	const char *hostname;
	const char *machine_id; /* /etc/machine-id */
	const char *boot_id;
	const char *kernel; /* uname -r */
	const char *arch; /* uname -m */
	const char *sonde_version;
	const char *command; /* sonde's own command line */
	const char *families; /* comma-separated, as requested */
	u32 cpus; /* possible CPUs; of several machines the most that one has */
	/* one moment on three clocks, ns (the same as the first meta_clock event) */
	u64 monotonic, boottime, realtime, clock_error;
};

/*
 * fd remains the caller's and must be empty and seekable, or a pipe. -1: nothing is written, records are only counted,
 * for commands that read them as they come. 0 or negative errno.
 */
int trace_writer__create(struct trace_writer **out, int fd, const struct schema *schema, const struct trace_head *head);
/*
 * Adds a record of the ring, whose struct event names the kind. -EINVAL: an unknown kind or a size that does not fit it
 * (counted, not written). Any other error, such as ENOSPC from a write or -ENOMEM, is final: the file retains every
 * whole chunk written before, and later calls return the same error at once.
 */
int trace_writer__append(struct trace_writer *w, const void *record, u32 size);
/* Returns the id of a text and writes its meta_string record if it is new. 0: the empty string (also for NULL). */
u32 trace_writer__intern(struct trace_writer *w, const char *text, size_t len);
/*
 * The table of interned texts. trace_writer__bound_texts: it stores at most `max` texts; 0: the default.
 * trace_writer__forget_texts: empties it, so that a text that is used again gets a new id and is written again, which
 * costs only bytes in the file.
 */
struct strings;
void trace_writer__bound_texts(struct trace_writer *w, u32 max);
void trace_writer__forget_texts(struct trace_writer *w);
const struct strings *trace_writer__texts(const struct trace_writer *w);
/* Returns the bytes of buffers for records that are not written yet. */
u64 trace_writer__buffers(const struct trace_writer *w);
/* Calls fn with the record of each interned text, known or new, so that fn can evict texts as the writer does. */
void trace_writer__listen(struct trace_writer *w, void (*fn)(const void *record, u32 size, void *arg), void *arg);
/* Writes records that have waited for half a second at `now` (CLOCK_MONOTONIC ns). Call it every 100 ms. */
int trace_writer__tick(struct trace_writer *w, u64 now);
/* Writes all waiting records. */
int trace_writer__flush(struct trace_writer *w);
/* Flushes and writes the index. */
int trace_writer__finish(struct trace_writer *w);
/* Removes all records from the file, after trace_writer__finish or before. 0 or negative errno. */
int trace_writer__rewind(struct trace_writer *w);
/* Returns the number of a family's refused records, after the end; first and last are their times. */
u64 trace_writer__refused(const struct trace_writer *w, u32 family, u64 *first, u64 *last);
u64 trace_writer__bytes(const struct trace_writer *w);
u64 trace_writer__events(const struct trace_writer *w);
void trace_writer__free(struct trace_writer *w);
