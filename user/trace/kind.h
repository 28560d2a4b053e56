/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The records of one kind that wait for the writer's next chunk. */
#ifndef SONDE_TRACE_KIND_H
#define SONDE_TRACE_KIND_H

#include <zstd.h>

#include "schema/schema.h"
#include "trace/bytes.h"
#include "trace/column.h"

struct kind {
	const struct schema_event *event;
	struct column *columns; /* one a field; of a text's lengths for a text */
	struct bytes *texts; /* one a field, used by texts alone */
	struct bytes head; /* the columns' heads, scratch */
	u8 *stage; /* rows not yet in the columns */
	u32 stage_room, staged; /* rows */
	u32 row_size; /* in the stage: the record, the length of its tail, a multiple of 16 */
	u8 *varied; /* a row: the bits in which the staged rows differ */
	u32 rows; /* since the last reset, staged ones included */
	u64 raw; /* their bytes */
	u32 idle; /* chunks in a row that used little of the buffers */
	u64 first, last; /* smallest start and largest end of those not staged any more */
};

struct kind *kind__new(const struct schema_event *event);
void kind__free(struct kind *k);
/* -EINVAL if the size does not fit the event, -ENOMEM */
int kind__append(struct kind *k, const void *record, u32 size);
/* Moves what is staged into the columns. */
int kind__settle(struct kind *k);
/* Bytes of the frame's content, after kind__settle(). */
size_t kind__content_size(const struct kind *k);
/* Adds the frame to out. */
int kind__compress(struct kind *k, ZSTD_CCtx *zstd, struct bytes *out);
void kind__reset(struct kind *k);
/* Gives back what is empty after kind__reset(). */
void kind__trim(struct kind *k);
size_t kind__memory(const struct kind *k);

static inline bool field__is_text(const struct schema_field *f)
{
	return f->type == FIELD_TEXT || f->type == FIELD_TAIL;
}

#endif
