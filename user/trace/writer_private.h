/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between writer.c, which takes records, and writer_chunk.c, which writes chunks and indexes of them. */
#pragma once

#include "trace/kind.h"
#include "trace/strings.h"
#include "trace/writer.h"

/* Records of one family that were refused, for a meta_loss record at the end. */
struct refused {
	u64 count, first, last;
};

struct trace_writer {
	int fd;
	int error; /* of the first write that failed or of a lack of memory; nothing is written after it; 0: none */
	const struct schema *schema;
	struct kind **kinds; /* one for each event of the schema, made when it first occurs */
	struct kind **by_id[256]; /* [id >> 8][id & 0xff]: points into kinds */
	ZSTD_CCtx *zstd;
	struct bytes chunk; /* where a chunk or an index frame is composed before it is written */
	struct buffer_use chunk_use;
	struct bytes index; /* entries of the next index frame */
	u32 index_chunks;
	u64 index_before; /* offset of the previous index frame */
	struct strings strings;
	struct refused refused[FAMILY_MAX];
	u64 rows, raw; /* number of the records that wait for the next chunk, and their bytes */
	u64 chunks, events, offset;
	u64 head_size; /* bytes of the file before its first chunk */
	u64 now; /* of the last tick */
	u64 waiting_since; /* 0: not known yet */
	u64 last_time; /* latest time of the records so far */
	bool finished;
	void (*listener)(const void *record, u32 size, void *arg); /* NULL: none */
	void *listener_arg;
};

/* Writes everything or returns an error; then the file is truncated to the last whole chunk, if that is possible. */
int trace_writer__write(struct trace_writer *w, const u8 *at, size_t n);
void frame__put(u8 *to, u32 payload);
/* Writes an index frame of the chunks since the last one. */
int trace_writer__write_index(struct trace_writer *w, u32 flags);
int trace_writer__cut_chunk(struct trace_writer *w);
