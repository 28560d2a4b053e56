// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "export/protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "output/text.h"

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_LEN = 2 };

void pb__free(struct pb *p)
{
	free(p->data);
	*p = (struct pb){ 0 };
}

static bool reserve(struct pb *p, size_t more)
{
	size_t want = p->allocated ? p->allocated : 4096;
	u8 *data;

	if (p->failed)
		return false;
	if (p->allocated - p->len >= more)
		return true;
	while (want - p->len < more)
		want *= 2;
	data = realloc(p->data, want);
	if (!data) {
		p->failed = true;
		return false;
	}
	p->data = data;
	p->allocated = want;
	return true;
}

static u32 encode(u8 *out, u64 value)
{
	u32 n = 0;

	for (; value >= 0x80; value >>= 7)
		out[n++] = (u8)(value | 0x80);
	out[n++] = (u8)value;
	return n;
}

void pb__varint(struct pb *p, u64 value)
{
	if (reserve(p, 10))
		p->len += encode(p->data + p->len, value);
}

static void put_tag(struct pb *p, u32 field, u32 wire)
{
	pb__varint(p, field << 3 | wire);
}

void pb__int(struct pb *p, u32 field, u64 value)
{
	put_tag(p, field, WIRE_VARINT);
	pb__varint(p, value);
}

/* All machines that sonde supports are little-endian. */
void pb__fixed64(struct pb *p, u32 field, u64 value)
{
	put_tag(p, field, WIRE_64);
	if (reserve(p, sizeof(value)))
		memcpy(p->data + p->len, &value, sizeof(value));
	p->len += p->failed ? 0 : sizeof(value);
}

void pb__double(struct pb *p, u32 field, double value)
{
	u64 bits;

	memcpy(&bits, &value, sizeof(bits));
	pb__fixed64(p, field, bits);
}

void pb__bytes(struct pb *p, u32 field, const void *data, size_t len)
{
	put_tag(p, field, WIRE_LEN);
	pb__varint(p, len);
	pb__append(p, data, len);
}

void pb__append(struct pb *p, const void *data, size_t len)
{
	if (!len || !reserve(p, len))
		return;
	memcpy(p->data + p->len, data, len);
	p->len += len;
}

void pb__text(struct pb *p, u32 field, const char *text, size_t len)
{
	char *clean;
	size_t i;

	for (i = 0; i < len && (signed char)text[i] > 0; i++)
		;
	if (i == len) {
		pb__bytes(p, field, text, len);
		return;
	}
	clean = text__utf8(text, len);
	if (clean)
		pb__bytes(p, field, clean, strlen(clean));
	else
		p->failed = true;
	free(clean);
}

/* Reserves one byte for the length, which is enough for most messages; a longer one moves the contents. */
size_t pb__begin(struct pb *p, u32 field)
{
	put_tag(p, field, WIRE_LEN);
	if (reserve(p, 1))
		p->len++;
	return p->len;
}

void pb__end(struct pb *p, size_t at)
{
	u8 length[10];
	u32 n;

	if (p->failed)
		return;
	n = encode(length, p->len - at);
	if (!reserve(p, n))
		return;
	memmove(p->data + at + n - 1, p->data + at, p->len - at);
	memcpy(p->data + at - 1, length, n);
	p->len += n - 1;
}
