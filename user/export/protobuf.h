/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes Protocol Buffers' wire format. `failed` is set when an allocation fails, and ends all writing. */
#pragma once

#include "core/types.h"

struct pb {
	u8 *data;
	size_t len, allocated;
	bool failed;
};

void pb__free(struct pb *p);
/* Adds a field of type (u)int32/64, bool or enum; negative values as 64 bits. */
void pb__int(struct pb *p, u32 field, u64 value);
void pb__fixed64(struct pb *p, u32 field, u64 value);
void pb__double(struct pb *p, u32 field, double value);
void pb__bytes(struct pb *p, u32 field, const void *data, size_t len);
/* Adds a string field; invalid UTF-8 is replaced. */
void pb__text(struct pb *p, u32 field, const char *text, size_t len);
/* Begin and end a message or packed field; pb__end gets what pb__begin returned. */
size_t pb__begin(struct pb *p, u32 field);
void pb__end(struct pb *p, size_t at);
/* Adds fields that are encoded already. */
void pb__append(struct pb *p, const void *data, size_t len);
/* Adds an element of a packed field. */
void pb__varint(struct pb *p, u64 value);
