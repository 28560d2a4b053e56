// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "nvtx_schema.h"

#include "nvtx.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMAS_MAX   256
#define ENTRIES_MAX   32
#define NAME_BYTES    32
#define DYNAMIC_FIRST (1ULL << 32)
#define DEPTH_MAX     4 /* schemas within schemas */
#define ARRAY_MAX     8 /* elements that are written */

enum {
	FIELD_NAME = 1 << 1,
	FIELD_FLAGS = 1 << 3,
	FIELD_STATIC_SIZE = 1 << 6,
	FIELD_ALIGNMENT = 1 << 7,
	FIELD_ID = 1 << 8
};
enum { ENUM_FIELD_NAME = 1 << 1, ENUM_FIELD_ID = 1 << 5 };
enum {
	FLAG_POINTER = 1 << 1,
	FLAG_ARRAY_FIXED = 1 << 4,
	FLAG_ARRAY_INDEX = 3 << 4,
	FLAG_ARRAY = 7 << 4,
	FLAG_HIDE = 1 << 9,
	FLAG_MESSAGE = 1 << 10
};

struct entry {
	uint64_t flags, type, detail, offset;
	char name[NAME_BYTES];
};

struct schema {
	uint64_t id;
	uint64_t name; /* of a text */
	size_t size; /* bytes */
	uint32_t alignment;
	uint32_t n;
	bool is_enum; /* the entries are values: `offset` has them */
	struct entry entries[ENTRIES_MAX];
};

static struct {
	struct schema *list[SCHEMAS_MAX];
	uint32_t n;
	uint32_t lock;
} schemas;

struct writer {
	char *buf;
	size_t len, used;
	uint64_t message;
};

static const struct schema *find(uint64_t id)
{
	for (uint32_t i = 0; i < __atomic_load_n(&schemas.n, __ATOMIC_ACQUIRE); i++)
		if (schemas.list[i]->id == id)
			return schemas.list[i];
	return NULL;
}

enum value_class { VALUE_OTHER, VALUE_SIGNED, VALUE_UNSIGNED, VALUE_FLOAT };

/* Of the predefined types, the size in bytes and what the bytes are; 0: as an address */
static const struct {
	uint8_t size, is;
} types[] = {
	[ENTRY_CHAR] = { 1, VALUE_OTHER },	  [ENTRY_UCHAR] = { 1, VALUE_UNSIGNED },
	[ENTRY_SHORT] = { 2, VALUE_SIGNED },	  [ENTRY_USHORT] = { 2, VALUE_UNSIGNED },
	[ENTRY_INT] = { 4, VALUE_SIGNED },	  [ENTRY_UINT] = { 4, VALUE_UNSIGNED },
	[ENTRY_LONG] = { 8, VALUE_SIGNED },	  [ENTRY_ULONG] = { 8, VALUE_UNSIGNED },
	[ENTRY_LONGLONG] = { 8, VALUE_SIGNED },	  [ENTRY_ULONGLONG] = { 8, VALUE_UNSIGNED },
	[ENTRY_INT8] = { 1, VALUE_SIGNED },	  [ENTRY_UINT8] = { 1, VALUE_UNSIGNED },
	[ENTRY_INT16] = { 2, VALUE_SIGNED },	  [ENTRY_UINT16] = { 2, VALUE_UNSIGNED },
	[ENTRY_INT32] = { 4, VALUE_SIGNED },	  [ENTRY_UINT32] = { 4, VALUE_UNSIGNED },
	[ENTRY_INT64] = { 8, VALUE_SIGNED },	  [ENTRY_UINT64] = { 8, VALUE_UNSIGNED },
	[ENTRY_FLOAT] = { 4, VALUE_FLOAT },	  [ENTRY_DOUBLE] = { 8, VALUE_FLOAT },
	[ENTRY_LONGDOUBLE] = { 16, VALUE_FLOAT }, [ENTRY_SIZE] = { 8, VALUE_UNSIGNED },
	[ENTRY_ADDRESS] = { 8, VALUE_UNSIGNED },  [ENTRY_BYTE] = { 1, VALUE_UNSIGNED },
	[ENTRY_FLOAT32] = { 4, VALUE_FLOAT },	  [ENTRY_FLOAT64] = { 8, VALUE_FLOAT },
	[ENTRY_RANGE_ID] = { 8, VALUE_UNSIGNED }, [ENTRY_CATEGORY] = { 4, VALUE_UNSIGNED },
	[ENTRY_COLOR] = { 4, VALUE_UNSIGNED },
};

static size_t size_of_type(uint64_t type)
{
	return type < sizeof(types) / sizeof(types[0]) && types[type].size ? types[type].size : sizeof(void *);
}

static size_t entry_size(const struct entry *e, size_t *alignment)
{
	const struct schema *inner = e->type >= ENTRY_SCHEMA_FIRST ? find(e->type) : NULL;
	bool is_text = e->type == ENTRY_CSTRING || e->type == ENTRY_CSTRING_UTF8;
	size_t size = inner ? inner->size : size_of_type(e->type), n = 1;

	*alignment = inner ? inner->alignment : size;
	if (e->flags & FLAG_POINTER)
		return *alignment = 8;
	if (is_text && e->detail) {
		*alignment = 1;
		return e->detail;
	}
	if ((e->flags & FLAG_ARRAY) == FLAG_ARRAY_FIXED && e->detail)
		n = e->detail;
	return size * n;
}

/* Offsets that are not given follow from the alignment, as in C. */
static void lay_out(struct schema *s, size_t most)
{
	size_t at = 0, largest = 1, alignment;

	for (uint32_t i = 0; i < s->n; i++) {
		size_t size = entry_size(&s->entries[i], &alignment);

		alignment = most && alignment > most ? most : alignment ? alignment : 1;
		largest = alignment > largest ? alignment : largest;
		at = (at + alignment - 1) / alignment * alignment;
		if (i && !s->entries[i].offset)
			s->entries[i].offset = at;
		at = s->entries[i].offset + size;
	}
	s->alignment = (uint32_t)largest;
	if (!s->size)
		s->size = (at + largest - 1) / largest * largest;
}

/* Returns a place in the list, with the lock held; NULL: there is none. */
static struct schema *begin(uint64_t id)
{
	struct schema *s;

	if (__atomic_exchange_n(&schemas.lock, 1, __ATOMIC_ACQUIRE))
		return NULL;
	s = schemas.n < SCHEMAS_MAX ? calloc(1, sizeof(*s)) : NULL;
	if (!s)
		__atomic_store_n(&schemas.lock, 0, __ATOMIC_RELEASE);
	else
		s->id = id ? id : DYNAMIC_FIRST + schemas.n;
	return s;
}

static uint64_t complete(struct schema *s)
{
	schemas.list[schemas.n] = s;
	__atomic_store_n(&schemas.n, schemas.n + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&schemas.lock, 0, __ATOMIC_RELEASE);
	return s->id;
}

uint64_t nvtx_schema__register(const struct nvtx_schema_attributes *a)
{
	struct schema *s;

	if (!a || !a->entries || !a->n_entries)
		return 0;
	s = begin(a->fields & FIELD_ID ? a->id : 0);
	if (!s)
		return 0;
	s->name = a->fields & FIELD_NAME ? nvtx__text(a->name) : 0;
	s->size = a->fields & FIELD_STATIC_SIZE ? a->static_size : 0;
	s->n = a->n_entries < ENTRIES_MAX ? (uint32_t)a->n_entries : ENTRIES_MAX;
	for (uint32_t i = 0; i < s->n; i++) {
		const struct nvtx_schema_entry *from = &a->entries[i];
		struct entry *e = &s->entries[i];

		*e = (struct entry){ from->flags, from->type, from->detail, from->offset, "" };
		snprintf(e->name, sizeof(e->name), "%s", from->name ? from->name : "");
	}
	lay_out(s, a->fields & FIELD_ALIGNMENT ? a->alignment : 0);
	return complete(s);
}

uint64_t nvtx_schema__register_enum(const struct nvtx_enum_attributes *a)
{
	struct schema *s;

	if (!a || !a->values || !a->n_values || (a->size != 1 && a->size != 2 && a->size != 4 && a->size != 8))
		return 0;
	s = begin(a->fields & ENUM_FIELD_ID ? a->id : 0);
	if (!s)
		return 0;
	s->name = a->fields & ENUM_FIELD_NAME ? nvtx__text(a->name) : 0;
	s->size = a->size;
	s->alignment = (uint32_t)a->size;
	s->is_enum = true;
	s->n = a->n_values < ENTRIES_MAX ? (uint32_t)a->n_values : ENTRIES_MAX;
	for (uint32_t i = 0; i < s->n; i++) {
		s->entries[i].offset = a->values[i].value;
		snprintf(s->entries[i].name, sizeof(s->entries[i].name), "%s",
			 a->values[i].name ? a->values[i].name : "");
	}
	return complete(s);
}

static double read_float(const void *data, size_t size)
{
	long double l;
	double d;
	float f;

	memcpy(size == sizeof(f) ? (void *)&f : size == sizeof(d) ? (void *)&d : &l, data, size);
	return size == sizeof(f) ? (double)f : size == sizeof(d) ? d : (double)l;
}

uint32_t nvtx_entry__number(uint64_t type, const void *data, size_t size, uint64_t *bits)
{
	size_t bytes = size_of_type(type);
	enum value_class is = type < sizeof(types) / sizeof(types[0]) ? types[type].is : VALUE_OTHER;
	double d;

	if (is == VALUE_OTHER || size < bytes)
		return NVTX_NO_PAYLOAD;
	*bits = 0;
	if (is == VALUE_FLOAT) {
		d = read_float(data, bytes);
		memcpy(bits, &d, sizeof(d));
		return NVTX_DOUBLE;
	}
	memcpy(bits, data, bytes);
	if (is == VALUE_UNSIGNED)
		return NVTX_UINT64;
	/* extends the sign */
	*bits = (uint64_t)((int64_t)(*bits << (64 - 8 * bytes)) >> (64 - 8 * bytes));
	return NVTX_INT64;
}

static void put(struct writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct writer *w, const char *fmt, ...)
{
	va_list args;
	int n;

	if (w->used + 1 >= w->len)
		return;
	va_start(args, fmt);
	n = vsnprintf(w->buf + w->used, w->len - w->used, fmt, args);
	va_end(args);
	w->used += n > 0 ? (size_t)n : 0;
	w->used = w->used < w->len ? w->used : w->len - 1;
}

static bool put_number(struct writer *w, uint64_t type, const void *data, size_t size)
{
	uint64_t bits;
	double d;

	switch (nvtx_entry__number(type, data, size, &bits)) {
	case NVTX_INT64:
		put(w, "%lld", (long long)bits);
		return true;
	case NVTX_UINT64:
		put(w, type == ENTRY_ADDRESS ? "0x%llx" : "%llu", (unsigned long long)bits);
		return true;
	case NVTX_DOUBLE:
		memcpy(&d, &bits, sizeof(d));
		put(w, "%.9g", d);
		return true;
	default:
		return false;
	}
}

static void put_enum(struct writer *w, const struct schema *s, const uint8_t *data, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, data, size < s->size ? size : s->size);
	for (uint32_t i = 0; i < s->n; i++)
		if (s->entries[i].offset == value) {
			put(w, "%s", s->entries[i].name);
			return;
		}
	put(w, "%llu", (unsigned long long)value);
}

static void put_schema(struct writer *w, const struct schema *s, const uint8_t *data, size_t size, int depth);

/* One element, at data. */
static void put_element(struct writer *w, uint64_t type, const uint8_t *data, size_t size, int depth)
{
	const struct schema *inner = type >= ENTRY_SCHEMA_FIRST ? find(type) : NULL;
	uint64_t handle;

	if (inner && inner->is_enum) {
		put_enum(w, inner, data, size);
	} else if (inner && depth < DEPTH_MAX) {
		put(w, "{");
		put_schema(w, inner, data, size, depth + 1);
		put(w, "}");
	} else if (type == ENTRY_REGISTERED_STRING && size >= 8) {
		memcpy(&handle, data, 8);
		put(w, "%s", text__of(handle));
	} else if (type == ENTRY_CHAR && size) {
		put(w, "%c", *data);
	} else if (!put_number(w, type, data, size)) {
		put(w, "?");
	}
}

/* A text that the payload contains, or points to. */
static void put_text(struct writer *w, const struct entry *e, const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;

	if (e->detail) {
		put(w, "%.*s", (int)(e->detail < size ? e->detail : size), text);
		return;
	}
	if (size < sizeof(text))
		return;
	memcpy(&text, data, sizeof(text));
	put(w, "%.200s", text ? text : "");
}

static void put_array(struct writer *w, const struct entry *e, const uint8_t *data, size_t size, int depth)
{
	size_t each = e->type >= ENTRY_SCHEMA_FIRST ? (find(e->type) ? find(e->type)->size : 0) : size_of_type(e->type);

	if (e->type == ENTRY_CHAR) {
		put(w, "%.*s", (int)(e->detail < size ? e->detail : size), (const char *)data);
		return;
	}
	put(w, "[");
	for (uint64_t i = 0; each && i < e->detail && (i + 1) * each <= size; i++) {
		if (i == ARRAY_MAX) {
			put(w, ",..");
			break;
		}
		put(w, i ? "," : "%s", "");
		put_element(w, e->type, data + i * each, each, depth);
	}
	put(w, "]");
}

static void put_entry(struct writer *w, const struct entry *e, const uint8_t *data, size_t size, int depth)
{
	if (e->flags & FLAG_POINTER)
		put(w, "*");
	else if (e->type == ENTRY_CSTRING || e->type == ENTRY_CSTRING_UTF8)
		put_text(w, e, data, size);
	else if ((e->flags & FLAG_ARRAY) == FLAG_ARRAY_FIXED)
		put_array(w, e, data, size, depth);
	else if (e->flags & FLAG_ARRAY)
		put(w, "[..]");
	else
		put_element(w, e->type, data, size, depth);
}

static void put_schema(struct writer *w, const struct schema *s, const uint8_t *data, size_t size, int depth)
{
	bool first = true;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct entry *e = &s->entries[i];
		size_t before;

		if (e->offset >= size || e->flags & FLAG_HIDE)
			continue;
		put(w, "%s%s%s", first ? "" : " ", e->name, *e->name ? "=" : "");
		before = w->used;
		put_entry(w, e, data + e->offset, size - e->offset, depth);
		if (e->flags & FLAG_MESSAGE && !depth && w->used > before)
			w->message = text__id(LANE_NVTX, NVTX_TEXT, w->buf + before, w->used - before);
		first = false;
	}
}

char *nvtx_schema__write(uint64_t schema, const void *data, size_t size, char *buf, size_t len, uint64_t *name,
			 uint64_t *message)
{
	const struct schema *s = schema >= ENTRY_SCHEMA_FIRST ? find(schema) : NULL;
	struct writer w = { .buf = buf, .len = len };

	*buf = '\0';
	*name = s ? s->name : 0;
	if (!data || !size)
		return buf;
	if (s)
		put_schema(&w, s, data, size == SIZE_MAX ? s->size : size, 0);
	else if ((schema == ENTRY_CSTRING || schema == ENTRY_CSTRING_UTF8) && size)
		put(&w, "%.*s", size == SIZE_MAX ? 400 : (int)(size < 400 ? size : 400), (const char *)data);
	else if (schema && schema < ENTRY_SCHEMA_FIRST)
		put_element(&w, schema, data, size, 0);
	*message = w.message;
	return buf;
}
