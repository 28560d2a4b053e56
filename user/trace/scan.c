// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Builds the table of chunks if a killed recording left no index: goes from frame to frame and reads headers only.
 * Invalid data is skipped up to the next valid header.
 */
#include <errno.h>

#include "trace/format.h"
#include "trace/reader_priv.h"

#define CHUNK_HEADER_MAX (FRAME_HEADER + CHUNK_ENTRIES + CHUNK_KINDS_MAX * KIND_ENTRY + 8)
#define WINDOW		 65536
#define TRIES_MAX	 10000 /* invalid headers that are examined: a file full of them must not take hours */
#define SKIPPABLE	 0x184d2a50U /* the sixteen magics of frames that zstd skips */

struct scan {
	const struct trace *t;
	struct chunk_table *table;
	struct bytes frame;
	u64 at;
	u32 tries;
};

enum found { WHOLE, CUT_OFF, WRONG };

/* Adds the chunk at s->at to the table and moves past it. Returns enum found or negative errno. */
static int take_chunk(struct scan *s, u32 size, u64 left)
{
	struct chunk_header h;
	int err;

	if (size > CHUNK_HEADER_MAX)
		return WRONG;
	s->frame.n = 0;
	err = bytes__reserve(&s->frame, size);
	if (!err)
		err = trace_file__read(s->t, s->at, s->frame.data, size);
	if (err)
		return err == -EBADMSG ? CUT_OFF : err;
	if (chunk_header__parse(&h, s->frame.data, size))
		return WRONG;
	if (h.chunk.size > left)
		return CUT_OFF;
	h.chunk.offset = s->at;
	s->at += h.chunk.size;
	return chunk_table__add(s->table, &h);
}

/* Returns whether a frame with this tag may have this size, to distinguish a torn frame from a damaged one. */
static bool is_likely_size(u32 tag, u64 size)
{
	if (tag == CHUNK_TAG)
		return size <= CHUNK_HEADER_MAX && size >= FRAME_HEADER + CHUNK_ENTRIES + 8 &&
		       !((size - FRAME_HEADER - CHUNK_ENTRIES - 8) % KIND_ENTRY);
	return tag == INDEX_TAG && size <= INDEX_FRAME_MAX;
}

static int take_frame(struct scan *s)
{
	u64 left = s->t->size - s->at, size;
	u8 head[FRAME_HEADER + 4];
	u32 magic, tag;
	int err;

	if (left < sizeof(head))
		return CUT_OFF;
	err = trace_file__read(s->t, s->at, head, sizeof(head));
	if (err)
		return err == -EBADMSG ? CUT_OFF : err;
	magic = get32(head);
	size = (u64)get32(head + 4) + FRAME_HEADER;
	tag = get32(head + FRAME_HEADER);
	if ((magic & ~0xfU) != SKIPPABLE)
		return WRONG;
	if (magic == FRAME_MAGIC && tag == CHUNK_TAG && size <= left)
		return take_chunk(s, size, left);
	if (magic == FRAME_MAGIC && size > left)
		return is_likely_size(tag, size) ? CUT_OFF : WRONG;
	if (magic == FRAME_MAGIC && tag == INDEX_TAG) {
		err = size > INDEX_FRAME_MAX ? -EBADMSG : index_frame__read(&s->frame, s->t, s->at, size);
		if (err)
			return err == -EBADMSG ? WRONG : err;
	} else if (s->t->minor <= FORMAT_MINOR || size > left) {
		return WRONG; /* only later versions have other frames */
	}
	s->at += size;
	return WHOLE;
}

/* Moves past the frame at `offset` if it is whole. Returns enum found or negative errno. */
static int try_at(struct scan *s, u64 offset)
{
	struct scan try = *s;
	int res;

	try.at = offset;
	res = take_frame(&try);
	s->frame = try.frame;
	if (res == WHOLE)
		s->at = try.at;
	return res;
}

/* Moves past the next whole frame; CUT_OFF: there is none. */
static int resynchronize(struct scan *s)
{
	u8 *window = malloc(WINDOW + 16);
	u64 from = s->at + 1;
	int res = window ? CUT_OFF : -ENOMEM;

	while (res == CUT_OFF && from + 16 < s->t->size && s->tries < TRIES_MAX) {
		size_t n = s->t->size - from < WINDOW + 16 ? s->t->size - from : WINDOW + 16, i;
		int err = trace_file__read(s->t, from, window, n);

		if (err) {
			res = err == -EBADMSG ? CUT_OFF : err;
			break;
		}
		for (i = 0; i + 16 <= n && res == CUT_OFF && s->tries < TRIES_MAX; i++) {
			u32 tag = get32(window + i + FRAME_HEADER);

			if (get32(window + i) != FRAME_MAGIC || (tag != CHUNK_TAG && tag != INDEX_TAG))
				continue;
			s->tries++;
			res = try_at(s, from + i);
			res = res == WRONG ? CUT_OFF : res;
		}
		from += i;
	}
	free(window);
	return res;
}

int chunk_table__scan(struct chunk_table *table, const struct trace *t)
{
	struct scan s = { .t = t, .table = table, .at = t->body };
	int res = WHOLE;
	bool cut_off;

	while (res == WHOLE && s.at < t->size) {
		res = take_frame(&s);
		if (res < 0 || res == WHOLE)
			continue;
		cut_off = res == CUT_OFF;
		res = resynchronize(&s);
		/* if a whole frame follows, the frame that seemed to be cut off is damaged: its size is wrong */
		table->faults += !cut_off || res == WHOLE;
	}
	if (res == CUT_OFF)
		table->torn = t->size - s.at;
	bytes__free(&s.frame);
	return res < 0 ? res : 0;
}
