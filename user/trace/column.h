/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A column of numbers as stored in a chunk (docs/format.md, "Columns").
 *
 * Values are turned into small or repeating numbers and split into byte planes; a plane in which all bytes are equal is
 * not stored. This is done as records arrive, a block of rows at a time while they are in the cache: collecting a
 * column of 64 Ki rows later costs more than compressing it.
 */
#pragma once

#include "core/types.h"

enum column_transform {
	COLUMN_PLAIN = 0,
	COLUMN_DELTA = 1, /* zigzag of the difference to the previous row */
	COLUMN_BEFORE = 2, /* time of the row minus value */
	COLUMN_DICT = 3, /* index in a list of the values that occur */
	COLUMN_TRANSFORMS
};

#define COLUMN_BLOCK	128 /* most rows pushed at once */
#define COLUMN_DICT_MAX 256
#define COLUMN_HEAD	4 /* transform, mask, u16 number of dictionary values; then base, dictionary */

struct column_dict;

struct column {
	u8 size; /* bytes a value: 1, 2, 4 or 8 */
	u8 transform;
	u8 mask; /* planes stored */
	u8 first; /* transform with which the next chunk starts */
	u8 patience; /* chunks until a dictionary is tried again */
	u32 rows;
	u32 capacity; /* of each plane, rows */
	u64 base;
	u64 previous;
	u8 *planes[8];
	struct column_dict *dict;
};

/* first: COLUMN_DICT if nothing is known about the values. size 1 is always plain. */
void column__init(struct column *c, u32 size, enum column_transform first);
/* Adds n rows, at most COLUMN_BLOCK; COLUMN_BEFORE needs their times. 0 or -ENOMEM. */
int column__push(struct column *c, const u64 *values, const u64 *time, u32 n);
/* Adds n rows of equal value, for columns of COLUMN_PLAIN and COLUMN_DICT. */
int column__push_same(struct column *c, u64 value, u32 n);
/* Returns the bytes of the head before the planes. */
u32 column__head_size(const struct column *c);
void column__write_head(const struct column *c, u8 *to);
/* Empties the column for the next chunk, but retains the buffers. */
void column__reset(struct column *c);
/* Frees the buffers. */
void column__trim(struct column *c);
/* Returns the bytes of the buffers. */
size_t column__memory(const struct column *c);

/* For reading: the parts of a column in a chunk's content */
struct column_view {
	u8 size;
	u8 transform;
	u8 mask;
	u16 n_dict;
	u64 base;
	const u8 *dict;
	const u8 *planes[8]; /* NULL: not stored */
};

/* Reads the head at *at and moves *at past it. -EBADMSG: the head is invalid or passes end. */
int column_view__head(struct column_view *v, u32 size, const u8 **at, const u8 *end);
/* Finds the planes at *at and moves *at past them. -EBADMSG: they are invalid or pass end. */
int column_view__planes(struct column_view *v, u32 rows, const u8 **at, const u8 *end);
/* Returns whether all rows have one value, which *value is set to. */
bool column_view__constant(const struct column_view *v, u64 *value);
/* Decodes the values; time has the same rows' times, and may be NULL except for COLUMN_BEFORE. */
void column_view__decode(const struct column_view *v, u64 *to, const u64 *time, u32 rows);
