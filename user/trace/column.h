/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A column of numbers as stored in a chunk (docs/format.md, "Columns").
 *
 * Values are turned into small or repeating numbers and split into byte planes; a plane in which every byte is the
 * same is not stored. That is done as the records arrive, a block of rows at a time while they are in the cache:
 * collecting a column out of 64 Ki rows later costs more than compressing it.
 */
#ifndef SONDE_TRACE_COLUMN_H
#define SONDE_TRACE_COLUMN_H

#include "core/types.h"

enum column_transform {
	COLUMN_PLAIN = 0,
	COLUMN_DELTA = 1, /* zigzag of the difference to the row before */
	COLUMN_BEFORE = 2, /* time of the row minus value */
	COLUMN_DICT = 3, /* index in a list of the values that occur */
	COLUMN_TRANSFORMS
};

#define COLUMN_BLOCK	128 /* rows pushed at once, at most */
#define COLUMN_DICT_MAX 256
#define COLUMN_HEAD	4 /* transform, mask, u16 number of dictionary values; then base, dictionary */

struct column_dict;

struct column {
	u8 size; /* bytes a value: 1, 2, 4 or 8 */
	u8 transform;
	u8 mask; /* planes stored */
	u8 first; /* transform that the next chunk starts with */
	u8 patience; /* chunks until a dictionary is tried again */
	u32 rows;
	u32 room; /* of each plane, rows */
	u64 base;
	u64 previous;
	u8 *planes[8];
	struct column_dict *dict;
};

/* first: COLUMN_DICT for a column about which nothing is known. size 1 is always plain. */
void column__init(struct column *c, u32 size, enum column_transform first);
/* n up to COLUMN_BLOCK; time (of the same rows) is for COLUMN_BEFORE. 0 or -ENOMEM. */
int column__push(struct column *c, const u64 *values, const u64 *time, u32 n);
/* The same for n rows that all hold value, for columns of COLUMN_PLAIN and COLUMN_DICT. */
int column__push_same(struct column *c, u64 value, u32 n);
/* Bytes of the head in front of the planes. */
u32 column__head_size(const struct column *c);
void column__write_head(const struct column *c, u8 *to);
/* An empty column for the next chunk. The buffers stay. */
void column__reset(struct column *c);
/* Gives the buffers back. */
void column__trim(struct column *c);
/* Bytes of the buffers. */
size_t column__memory(const struct column *c);

/* The reading side: where the parts lie in a chunk's content, and what they say. */
struct column_view {
	u8 size;
	u8 transform;
	u8 mask;
	u16 n_dict;
	u64 base;
	const u8 *dict;
	const u8 *planes[8]; /* NULL: not stored */
};

/* Reads the head at *at, moves *at behind it. -EBADMSG if it makes no sense or passes end. */
int column_view__head(struct column_view *v, u32 size, const u8 **at, const u8 *end);
/* Finds the planes at *at, moves *at behind them. */
int column_view__planes(struct column_view *v, u32 rows, const u8 **at, const u8 *end);
/* All rows have one value, *value. */
bool column_view__constant(const struct column_view *v, u64 *value);
/* The values; time (may be NULL when the transform is none of COLUMN_BEFORE) are those of the same rows. */
void column_view__decode(const struct column_view *v, u64 *to, const u64 *time, u32 rows);

#endif
