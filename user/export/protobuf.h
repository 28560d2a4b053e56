/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes Protocol Buffers' wire format: a handful of functions, where a generator
 * would want its own .proto files and a library. A failed allocation is kept in
 * `failed`, and ends all writing.
 */
#ifndef SONDE_EXPORT_PROTOBUF_H
#define SONDE_EXPORT_PROTOBUF_H

#include "core/types.h"

struct pb {
	u8 *data;
	size_t len, allocated;
	bool failed;
};

void pb__free(struct pb *p);
/* Fields of type (u)int32/64, bool and enum; negative ones as their 64 bits */
void pb__int(struct pb *p, u32 field, u64 value);
void pb__fixed64(struct pb *p, u32 field, u64 value);
void pb__double(struct pb *p, u32 field, double value);
void pb__bytes(struct pb *p, u32 field, const void *data, size_t len);
/* A string field in valid UTF-8, whatever text holds. */
void pb__text(struct pb *p, u32 field, const char *text, size_t len);
/* A message or a packed field between the two; pb__end gets what pb__begin returned. */
size_t pb__begin(struct pb *p, u32 field);
void pb__end(struct pb *p, size_t at);
/* Fields that are encoded already. */
void pb__append(struct pb *p, const void *data, size_t len);
/* An element of a packed field. */
void pb__varint(struct pb *p, u64 value);

#endif
