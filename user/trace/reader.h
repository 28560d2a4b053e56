/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads a .sonde file chunk by chunk in bounded memory: only the kinds and the
 * time range asked for are touched. Files are untrusted: every size is checked.
 *
 * Events are seen through descriptors, never as structs: resolve a field once,
 *
 *	const struct schema_event *e = schema__event(trace__schema(t), "cuda_copy");
 *	const struct schema_field *bytes = e ? schema_event__field(e, "bytes") : NULL;
 *
 * then read it row by row. A NULL field reads as 0 or "": an older trace that
 * has no such field works, and is known not to have it.
 */
#ifndef SONDE_TRACE_READER_H
#define SONDE_TRACE_READER_H

#include "schema/schema.h"
#include "trace/writer.h"

struct trace;
struct rows; /* events of one kind out of one chunk, by column */

struct trace_summary {
	u64 first, last; /* smallest start and largest end, CLOCK_MONOTONIC ns; over all chunks */
	u64 chunks;
	u64 events;
	u64 file_bytes;
	u64 raw_bytes; /* the same events as rows */
	bool has_index; /* false: the recording was cut off, the file was scanned */
	bool being_recorded; /* without index, and a recording still writes to it */
	u64 torn_bytes; /* at the end of a file that was cut off: no whole chunk */
};

struct kind_summary {
	const struct schema_event *event;
	u64 events;
	u64 compressed; /* bytes in the file */
	u64 raw;
};

/*
 * 0 or negative errno with a message in err that says what is wrong with the
 * file: -ENOMSG not a sonde trace, -EPROTO a newer major version, -EBADMSG damaged.
 * A file that was cut off (no index, torn last chunk) opens.
 */
int trace__open(struct trace **out, const char *path, char *err, size_t err_len);
/* The same in two steps, between which rights can be given up: the file's descriptor, and its contents, which takes it over. */
int trace__open_file(const char *path, char *err, size_t err_len);
int trace__open_fd(struct trace **out, int fd, char *err, size_t err_len);
void trace__close(struct trace *t);

const struct schema *trace__schema(const struct trace *t);
const struct trace_head *trace__head(const struct trace *t);
const struct trace_summary *trace__summary(const struct trace *t);
/* n kinds that occur in the file, by id */
const struct kind_summary *trace__kinds(const struct trace *t, u32 *n);
/* The text of a meta_string id; "" for 0 and for one the file does not have. All are loaded by trace__open. */
const char *trace__string(const struct trace *t, u32 id);

/* Some processes or threads; n 0: all. */
struct trace_ids {
	const u32 *list;
	u32 n;
};

static inline bool trace_ids__have(const struct trace_ids *ids, u32 id)
{
	for (u32 i = 0; i < ids->n; i++)
		if (ids->list[i] == id)
			return true;
	return !ids->n;
}

struct trace_filter {
	const struct schema_event *const *kinds; /* NULL-terminated; NULL: all */
	u64 from, to; /* CLOCK_MONOTONIC ns: spans that overlap [from, to), events in it; to 0: no limit. Chunk-wise:
		       * rows outside are passed over, a chunk wholly outside is not read. */
	struct trace_ids pids, tids; /* of these processes, of these threads; they must outlive the reading */
};

struct trace_window {
	u64 from, to; /* CLOCK_MONOTONIC ns */
};

/*
 * Readings that ask for a time then see the trace as if it had been recorded in these windows alone: what a window's
 * edge cuts begins or ends there, what ends there is EVENT_OPEN, what lies between two windows is left out. n
 * windows by time, which do not overlap; they must outlive the readings.
 */
void trace__set_windows(struct trace *t, const struct trace_window *windows, u32 n);

/* Above the numbers that the kernel and merge__traces give to processes and threads. */
#define TRACE_TASK_IDS 0x80000000u

/* A process or thread that has a number from `start` (CLOCK_MONOTONIC ns) until the next one in the list has it. */
struct trace_task {
	u32 number, id;
	u64 start;
};

/*
 * The kernel uses numbers again. Readings then see each process and thread under its id, in all fields of tasks, so
 * that two of one number are two. Filters take ids. n tasks by number and start; they must outlive the readings.
 */
void trace__set_tasks(struct trace *t, const struct trace_task *tasks, u32 n);

/*
 * Calls cb for each chunk's rows of each kind wanted, in file order (which is
 * nearly, not strictly, time order). cb returning non-zero ends it. Damaged
 * chunks are skipped and counted.
 */
int trace__read(struct trace *t, const struct trace_filter *filter, int (*cb)(const struct rows *rows, void *arg),
		void *arg);
/* Chunks skipped as damaged so far. */
u64 trace__damaged(const struct trace *t);
/* Checks every checksum and every frame; 0, or -EBADMSG with a message about the first fault and their number. */
int trace__verify(struct trace *t, u64 *faults, char *err, size_t err_len);

const struct schema_event *rows__event(const struct rows *r);
u32 rows__count(const struct rows *r);
/* Sign-extended where the field is signed; floats are converted. Enums as numbers. */
s64 rows__s64(const struct rows *r, const struct schema_field *f, u32 i);
static inline u64 rows__u64(const struct rows *r, const struct schema_field *f, u32 i)
{
	return (u64)rows__s64(r, f, i);
}
double rows__double(const struct rows *r, const struct schema_field *f, u32 i);
/* Text of FIELD_TEXT and FIELD_TAIL, not NUL-terminated; *len bytes */
const char *rows__text(const struct rows *r, const struct schema_field *f, u32 i, u32 *len);

#endif
