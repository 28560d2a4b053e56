/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The numbers in docs/format.md; only for the writer and the reader. */
#pragma once

#include <endian.h>
#include <string.h>

#include "core/types.h"

#define FORMAT_MAJOR 1
#define FORMAT_MINOR 0

/* One of the sixteen magics of frames that zstd skips. */
#define FRAME_MAGIC  0x184d2a5aU
#define FRAME_HEADER 8 /* magic and size precede the payload */

/* The file's first frame: offsets in the payload */
#define FILE_MAGIC	"SONDE" /* with its NUL */
#define FILE_MAGIC_SIZE 6
#define FILE_MAJOR	6 /* u16 */
#define FILE_MINOR	8 /* u16 */
#define FILE_HEAD_SIZE	12 /* u32, compressed */
#define FILE_HEAD_RAW	16 /* u32 */
#define FILE_HEAD_HASH	24 /* u64 */
#define FILE_HASH	32 /* u64, of the payload so far */
#define FILE_PAYLOAD	40
#define HEAD_RAW_MAX	(4U << 20)

/* A chunk's header */
#define CHUNK_TAG     0x4b4e4843U /* "CHNK" */
#define CHUNK_KINDS   4 /* u32 */
#define CHUNK_NUMBER  8 /* u64 */
#define CHUNK_FIRST   16 /* u64 */
#define CHUNK_LAST    24 /* u64 */
#define CHUNK_BODY    32 /* u64, bytes of the frames that follow */
#define CHUNK_ENTRIES 40
/* and its entries, one a kind */
#define KIND_ID		0 /* u16, then u16 zero */
#define KIND_ROWS	4 /* u32 */
#define KIND_CONTENT	8 /* u32, bytes of the decompressed frame */
#define KIND_COMPRESSED 12 /* u32 */
#define KIND_RAW	16 /* u32, of the same events as rows; then u32 zero */
#define KIND_FIRST	24 /* u64 */
#define KIND_LAST	32 /* u64 */
#define KIND_HASH	40 /* u64, of the compressed frame */
#define KIND_ENTRY	48

/* The index: entries of chunks, each followed by the entries of its kinds */
#define INDEX_TAG     0x58444e49U /* "INDX" */
#define INDEX_CHUNKS  4 /* u32 */
#define INDEX_FLAGS   8 /* u32, then u32 zero */
#define INDEX_BEFORE  16 /* u64, offset of the previous index frame; 0: none */
#define INDEX_ENTRIES 24
#define INDEX_FINAL   1U
#define INDEX_CHUNK   40 /* u64 offset, first, last; u32 size of the whole chunk, kinds; u64 number */
#define INDEX_KIND    16 /* u16 id, zero; u32 rows, compressed, raw */
/* and its end: u64 hash of the payload so far, u32 size of the whole frame, u32 magic */
#define INDEX_FOOTER	16
#define INDEX_END_MAGIC 0x53584453U /* "SDXS" */
/* Chunks in an index frame; this bounds the writer's memory. */
#define INDEX_MAX 1024

#define CHUNK_ROWS_MAX	65536
#define CHUNK_RAW_MAX	(16U << 20) /* of all kinds together; the last record may exceed it */
#define CONTENT_MAX	(128U << 20) /* of a decompressed frame */
#define CHUNK_KINDS_MAX 4096
#define TEXT_MAX	65535 /* bytes of a record's text */
/* Rows times size of a kind in a chunk: the limit above and the record that exceeded it */
#define ROWS_BYTES_MAX	(CHUNK_RAW_MAX + (128U << 10))
#define INDEX_FRAME_MAX (128U << 20)

static inline u64 get64(const void *p)
{
	u64 v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

static inline u32 get32(const void *p)
{
	u32 v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static inline u16 get16(const void *p)
{
	u16 v;

	memcpy(&v, p, sizeof(v));
	return le16toh(v);
}

static inline void put64(void *p, u64 v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

static inline void put32(void *p, u32 v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void put16(void *p, u16 v)
{
	v = htole16(v);
	memcpy(p, &v, sizeof(v));
}

/* size is 1, 2, 4 or 8 */
static inline u64 get_number(const void *p, u32 size)
{
	switch (size) {
	case 1:
		return *(const u8 *)p;
	case 2:
		return get16(p);
	case 4:
		return get32(p);
	default:
		return get64(p);
	}
}

static inline void put_number(void *p, u32 size, u64 v)
{
	v = htole64(v);
	memcpy(p, &v, size);
}
