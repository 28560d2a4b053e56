/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The records of one kind that wait for the writer's next chunk */
#pragma once

#include <zstd.h>

#include "schema/schema.h"
#include "trace/bytes.h"
#include "trace/column.h"

/* The most that recent chunks used of a buffer */
struct buffer_use {
	size_t peak;
	u32 chunks;
};

struct kind {
	const struct schema_event *event;
	struct column *columns; /* one for each field; for a text that of its lengths */
	struct bytes *texts; /* one for each field, used for texts only */
	struct bytes head; /* the columns' heads, scratch */
	u8 *stage; /* rows that are not yet in the columns */
	u32 stage_room, staged; /* rows */
	u32 row_size; /* bytes of a row in the stage: the record and its tail's length, rounded up to 16 */
	u8 *varied; /* a row of the bits in which staged rows differ */
	u32 rows; /* since the last reset, with the staged ones */
	u64 raw; /* their bytes */
	struct buffer_use use; /* of the buffers */
	u64 first, last; /* smallest start and largest end of the rows in the columns */
};

struct kind *kind__new(const struct schema_event *event);
void kind__free(struct kind *k);
/* 0, -EINVAL (the size does not fit the event) or -ENOMEM. */
int kind__append(struct kind *k, const void *record, u32 size);
/* Moves staged rows into the columns. */
int kind__settle(struct kind *k);
/* Returns the bytes of the frame's content; call after kind__settle(). */
size_t kind__content_size(const struct kind *k);
/* Adds the frame to out. */
int kind__compress(struct kind *k, ZSTD_CCtx *zstd, struct bytes *out);
void kind__reset(struct kind *k);
/* Frees the buffers; call after kind__reset(). */
void kind__trim(struct kind *k);
size_t kind__memory(const struct kind *k);

static inline bool field__is_text(const struct schema_field *f)
{
	return f->type == FIELD_TEXT || f->type == FIELD_TAIL;
}
