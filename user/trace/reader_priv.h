/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the reader's files. */
#pragma once

#include <zstd.h>

#include "trace/bytes.h"
#include "trace/column.h"
#include "trace/reader.h"

struct chunk_kind {
	u16 id;
	u32 rows, compressed, raw;
};

struct chunk {
	u64 offset, number, first, last;
	u32 size; /* of header and frames */
	u32 n; /* kinds */
	size_t kinds; /* index of the first in the table's kinds */
};

struct chunk_table {
	struct chunk *chunks;
	size_t n, capacity;
	struct chunk_kind *kinds;
	size_t n_kinds, kinds_room;
	u64 torn; /* bytes at the end that are no whole frame */
	u64 faults; /* number of parts with invalid data */
};

struct text_entry {
	u32 id;
	u32 at; /* offset in text, which STRING_BYTES_MAX bounds */
};

struct trace {
	int fd;
	u64 size; /* when the file was opened */
	u64 body; /* offset of the first frame after the head */
	u16 minor;
	struct schema *schema;
	struct cJSON *json; /* the texts in head point into it */
	struct trace_head head;
	struct trace_summary summary;
	struct kind_summary *kinds;
	u32 n_kinds;
	struct chunk_table table;
	struct bytes text; /* interned, each with a NUL */
	struct text_entry *texts; /* in the file's order, one for each id */
	u32 n_texts;
	u32 *text_slots; /* index + 1, by the id's hash; 0: free; a struct map would allocate each */
	u32 n_text_slots; /* 0 or a power of two, at least twice n_texts */
	u64 damaged; /* chunks that were damaged when they were read */
	u64 damaged_texts; /* the same of the reading of all names when the file is opened */
	const struct trace_window *windows;
	u32 n_windows;
	const struct trace_task *tasks;
	u32 n_tasks;
};

/* chunks.c: reads n bytes at offset. -EBADMSG: the file ends before. */
int trace_file__read(const struct trace *t, u64 offset, void *to, size_t n);
/* Fills the table from the index. -ENOENT: there is none, -EBADMSG: it is damaged. */
int chunk_table__from_index(struct chunk_table *table, const struct trace *t);
/* Fills the table by scanning the file. 0, -ENOMEM or a read error; damage is counted in the table. */
int chunk_table__scan(struct chunk_table *table, const struct trace *t);
void chunk_table__free(struct chunk_table *table);

struct chunk_header {
	struct chunk chunk; /* without offset */
	u32 header_size; /* bytes of its frame */
	const u8 *entries;
};
/* Parses a header's frame of `size` bytes. -EBADMSG: it is invalid. */
int chunk_header__parse(struct chunk_header *h, const u8 *frame, u32 size);
int chunk_table__add(struct chunk_table *table, const struct chunk_header *h);
/* Reads the index frame of `size` bytes at offset and checks all but its entries. */
int index_frame__read(struct bytes *b, const struct trace *t, u64 offset, u32 size);

/* rows.c */
struct column_data {
	struct column_view view;
	u64 *values; /* a value for each row; of texts rows + 1 offsets */
	const u8 *text; /* texts only */
	u64 constant;
	bool is_constant; /* values is not used */
	bool decoded;
};

#define TASK_FIELDS_MAX 8 /* of an event; more fields get no ids */

struct rows {
	const struct schema_event *event;
	u32 count; /* after filtering */
	u32 n_unfiltered;
	u32 *selected; /* rows that passed the filter; NULL: all */
	struct column_data *columns;
	/* buffers, reused for each chunk */
	ZSTD_DCtx *zstd;
	struct bytes header, compressed, content, arena, selection, column_room, cut[3], tasks[TASK_FIELDS_MAX];
};

void rows__release(struct rows *r);
/* Loads the kind of a chunk that the entry describes, checks checksum and structure. -EBADMSG: damaged. */
int rows__load(struct rows *r, const struct trace *t, const struct schema_event *e, const u8 *entry, u64 offset);
/* Selects the rows that pass the filter. */
int rows__select(struct rows *r, const struct trace *t, const struct trace_filter *f, const u8 *entry);
/* windows.c: are rows of this kind read in the trace's windows only? */
bool windows__apply(const struct trace *t, const struct trace_filter *f, const struct schema_event *e);
/* Cuts the rows' spans at the edges of the trace's windows. 0 or -ENOMEM. */
int rows__cut(struct rows *r, const struct trace *t, const u8 *entry);
/* tasks.c: replaces reused numbers by ids. 0 or -ENOMEM. */
int rows__renumber(struct rows *r, const struct trace *t);
/* Returns a copy of the column's values in `room`, which may be changed; NULL: no memory. */
u64 *rows__own_values(struct rows *r, u32 index, struct bytes *room);
/* Returns whether [begin, end] lies between two windows. */
bool windows__leave_out(const struct trace *t, u64 begin, u64 end);
/* Reads a chunk's header into r->header and checks it against the table. */
int rows__chunk_header(struct rows *r, const struct trace *t, const struct chunk *c, struct chunk_header *h);
/* Decodes a column if needed; NULL: it is constant. */
const u64 *rows__values(const struct rows *r, u32 index);
