/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads a .sonde file chunk by chunk in bounded memory: only the requested kinds and time range. Files are untrusted:
 * every size is checked.
 *
 * Events are read through descriptors, never as structs: look up a field once,
 *
 *	const struct schema_event *e = schema__event(trace__schema(t), "cuda_copy");
 *	const struct schema_field *bytes = e ? schema_event__field(e, "bytes") : NULL;
 *
 * then read it row by row. A NULL field reads as 0 or "", so that older traces without the field work.
 */
#pragma once

#include "schema/schema.h"
#include "trace/writer.h"

struct trace;
struct rows; /* events of one kind out of one chunk, by column */

struct trace_summary {
	u64 first, last; /* smallest start and largest end, CLOCK_MONOTONIC ns; over all chunks */
	u64 chunks;
	u64 events;
	u64 file_bytes;
	u64 raw_bytes; /* bytes of the same events as rows */
	bool has_index; /* false: the recording was cut off and the file scanned */
	bool being_recorded; /* it has no index yet, because it is still being recorded */
	u64 torn_bytes; /* bytes of an incomplete chunk at the end of a file that was cut off */
};

struct kind_summary {
	const struct schema_event *event;
	u64 events;
	u64 compressed; /* bytes in the file */
	u64 raw;
};

/*
 * 0 or negative errno with a message about the file in err: -ENOMSG not a sonde trace, -EPROTO a newer major version,
 * -EBADMSG damaged. A file that was cut off (no index, torn last chunk) opens.
 */
int trace__open(struct trace **out, const char *path, char *err, size_t err_len);
/* trace__open in two steps, to drop privileges in between. trace__open_fd takes over the descriptor. */
int trace__open_file(const char *path, char *err, size_t err_len);
int trace__open_fd(struct trace **out, int fd, char *err, size_t err_len);
/* Reads the records of a file that its writer has rewound and finished again. As trace__open. */
int trace__reopen(struct trace *t, char *err, size_t err_len);
void trace__close(struct trace *t);

const struct schema *trace__schema(const struct trace *t);
const struct trace_head *trace__head(const struct trace *t);
const struct trace_summary *trace__summary(const struct trace *t);
/* Returns the n kinds that occur in the file, by id. */
const struct kind_summary *trace__kinds(const struct trace *t, u32 *n);
/* Does the file have events of the kind? */
bool trace__has(const struct trace *t, const char *kind);
/* Returns the text of a meta_string id; "" for 0 or an unknown id. trace__open loads all texts. */
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
	u64 from, to; /* CLOCK_MONOTONIC ns: spans that overlap [from, to) and events in it; to 0: no limit */
	struct trace_ids pids, tids; /* selected processes and threads; must outlive the reading */
	/*
	 * Which kinds are read in the trace's windows only (trace__set_windows), although no time is selected; NULL:
	 * none
	 */
	bool (*in_windows)(const struct schema_event *e);
};

struct trace_window {
	u64 from, to; /* CLOCK_MONOTONIC ns */
};

/*
 * Returns the end of the step that begins at `at`, to at most; step 0: to. at + step may exceed the largest number, as
 * a damaged trace has any times.
 */
static inline u64 trace_window__step_end(u64 at, u64 step, u64 to)
{
	return !step || to - at <= step ? to : at + step;
}

/*
 * Readings that select a time, or kinds by in_windows, then get the trace as if recorded in these n windows only: spans
 * are cut at a window's edges (EVENT_OPEN if cut at its end), and what lies between windows is omitted. Windows are in
 * order of time, do not overlap, and must outlive the readings.
 */
void trace__set_windows(struct trace *t, const struct trace_window *windows, u32 n);

/* Ids of tasks begin above the numbers of the kernel and of merge__traces. */
#define TRACE_TASK_IDS 0x80000000u

/* A task that has a number from `start` (CLOCK_MONOTONIC ns) until the next one in the list with this number starts. */
struct trace_task {
	u32 number, id;
	u64 start;
};

/*
 * The kernel reuses numbers. Readings then return ids of tasks instead, in all fields of tasks, to distinguish tasks of
 * one number. Filters take ids. n tasks by number and start; they must outlive the readings.
 */
void trace__set_tasks(struct trace *t, const struct trace_task *tasks, u32 n);

/*
 * Calls cb for the rows of each chunk and selected kind, in file order, which is nearly time order, until it returns
 * other than 0. What is damaged in a chunk is skipped, and the chunk is counted.
 */
int trace__read(struct trace *t, const struct trace_filter *filter, int (*cb)(const struct rows *rows, void *arg),
		void *arg);
/* Reads all rows of one kind; a trace that lacks it has none. */
int trace__read_kind(struct trace *t, const char *kind, int (*cb)(const struct rows *rows, void *arg), void *arg);
/* Returns how often readings met damage in a chunk (a chunk counts once per reading) or between chunks; 0: none. */
u64 trace__damaged(const struct trace *t);
/* Checks every checksum and frame. 0, or -EBADMSG with a message about the first fault and the number of faults. */
int trace__verify(struct trace *t, u64 *faults, char *err, size_t err_len);

const struct schema_event *rows__event(const struct rows *r);
u32 rows__count(const struct rows *r);
/* Returns the value: signed fields sign-extended, floats converted, enums as numbers. */
s64 rows__s64(const struct rows *r, const struct schema_field *f, u32 i);
static inline u64 rows__u64(const struct rows *r, const struct schema_field *f, u32 i)
{
	return (u64)rows__s64(r, f, i);
}
double rows__double(const struct rows *r, const struct schema_field *f, u32 i);

/* A field's numbers in all rows, for readers of very many; floats as their bits. Valid as long as the rows are. */
struct row_numbers {
	const u64 *list; /* NULL: each is the constant */
	u64 constant;
	const u32 *selected; /* NULL: rows are numbered as in the list */
};

/* The field is neither FIELD_TEXT nor FIELD_TAIL. */
struct row_numbers rows__numbers(const struct rows *r, const struct schema_field *f);
static inline u64 row_numbers__at(const struct row_numbers *n, u32 i)
{
	return n->list ? n->list[n->selected ? n->selected[i] : i] : n->constant;
}

/* Returns the *len bytes of a FIELD_TEXT or FIELD_TAIL, which are not NUL-terminated. */
const char *rows__text(const struct rows *r, const struct schema_field *f, u32 i, u32 *len);
