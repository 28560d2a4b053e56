// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>

#include "trace/column.h"
#include "trace/format.h"

int column_view__head(struct column_view *v, u32 size, const u8 **at, const u8 *end)
{
	const u8 *p = *at;

	memset(v, 0, sizeof(*v));
	if ((size_t)(end - p) < COLUMN_HEAD + size)
		return -EBADMSG;
	v->size = size;
	v->transform = p[0];
	v->mask = p[1];
	v->n_dict = get16(p + 2);
	p += COLUMN_HEAD;
	v->base = get_number(p, size);
	p += size;
	if (v->transform >= COLUMN_TRANSFORMS || v->n_dict > COLUMN_DICT_MAX)
		return -EBADMSG;
	if ((v->transform == COLUMN_DICT) != !!v->n_dict)
		return -EBADMSG;
	if (v->mask >> 1 >> (size - 1) || (v->transform == COLUMN_DICT && v->mask > 1))
		return -EBADMSG;
	if ((v->transform == COLUMN_DELTA || v->transform == COLUMN_BEFORE) && size != 8)
		return -EBADMSG;
	if ((size_t)(end - p) < (size_t)v->n_dict * size)
		return -EBADMSG;
	v->dict = p;
	*at = p + (size_t)v->n_dict * size;
	return 0;
}

int column_view__planes(struct column_view *v, u32 rows, const u8 **at, const u8 *end)
{
	u32 i;

	for (i = 0; i < 8; i++) {
		if (!(v->mask >> i & 1))
			continue;
		if ((size_t)(end - *at) < rows)
			return -EBADMSG;
		v->planes[i] = *at;
		*at += rows;
	}
	if (v->transform == COLUMN_DICT && v->mask)
		for (i = 0; i < rows; i++)
			if (v->planes[0][i] >= v->n_dict)
				return -EBADMSG;
	return 0;
}

bool column_view__constant(const struct column_view *v, u64 *value)
{
	if (v->mask || v->transform == COLUMN_BEFORE)
		return false;
	*value = v->transform == COLUMN_DICT ? get_number(v->dict, v->size) : v->base;
	return true;
}

static void from_planes(const struct column_view *v, u64 *to, u64 fill, u32 rows)
{
	u32 p, i;

	for (p = 0; p < 8; p++)
		if (v->mask >> p & 1)
			fill &= ~(0xffULL << 8 * p);
	for (i = 0; i < rows; i++)
		to[i] = fill;
	for (p = 0; p < 8; p++) {
		const u8 *plane = v->planes[p];

		if (!plane)
			continue;
		for (i = 0; i < rows; i++)
			to[i] |= (u64)plane[i] << 8 * p;
	}
}

void column_view__decode(const struct column_view *v, u64 *to, const u64 *time, u32 rows)
{
	u64 previous = v->base;
	u32 i;

	switch (v->transform) {
	case COLUMN_PLAIN:
		from_planes(v, to, v->base, rows);
		break;
	case COLUMN_BEFORE:
		from_planes(v, to, v->base, rows);
		for (i = 0; i < rows; i++)
			to[i] = time[i] - to[i];
		break;
	case COLUMN_DELTA:
		from_planes(v, to, 0, rows);
		for (i = 0; i < rows; i++) {
			previous += to[i] >> 1 ^ -(to[i] & 1);
			to[i] = previous;
		}
		break;
	default:
		for (i = 0; i < rows; i++)
			to[i] = get_number(v->dict + (v->mask ? v->planes[0][i] : 0) * v->size, v->size);
	}
}
