/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Schemas of payloads, as a program registers them with NVTX's extensions (nvToolsExtPayload.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* nvtxPayloadSchemaEntry_v1 */
struct nvtx_schema_entry {
	uint64_t flags, type;
	const char *name, *description;
	uint64_t detail; /* of an array: its length, or the index of the entry that has it; of a string its length */
	uint64_t offset;
	const void *semantics, *reserved;
};

/* nvtxPayloadSchemaAttr_v1 */
struct nvtx_schema_attributes {
	uint64_t fields; /* bits: which of the others are set */
	const char *name;
	uint64_t type, flags;
	const struct nvtx_schema_entry *entries;
	size_t n_entries, static_size, alignment;
	uint64_t id;
	void *extension;
};

/* nvtxPayloadEnum_v1, nvtxPayloadEnumAttr_v1 */
struct nvtx_enum_value {
	const char *name;
	uint64_t value;
	int8_t is_flag;
};
struct nvtx_enum_attributes {
	uint64_t fields;
	const char *name;
	const struct nvtx_enum_value *values;
	size_t n_values, size;
	uint64_t id;
	void *extension;
};

/* Predefined types of entries */
enum nvtx_entry_type {
	ENTRY_CHAR = 1,
	ENTRY_UCHAR,
	ENTRY_SHORT,
	ENTRY_USHORT,
	ENTRY_INT,
	ENTRY_UINT,
	ENTRY_LONG,
	ENTRY_ULONG,
	ENTRY_LONGLONG,
	ENTRY_ULONGLONG,
	ENTRY_INT8,
	ENTRY_UINT8,
	ENTRY_INT16,
	ENTRY_UINT16,
	ENTRY_INT32,
	ENTRY_UINT32,
	ENTRY_INT64,
	ENTRY_UINT64,
	ENTRY_FLOAT,
	ENTRY_DOUBLE,
	ENTRY_LONGDOUBLE,
	ENTRY_SIZE,
	ENTRY_ADDRESS,
	ENTRY_BYTE = 32,
	ENTRY_FLOAT32 = 43,
	ENTRY_FLOAT64 = 44,
	ENTRY_RANGE_ID = 67,
	ENTRY_CATEGORY = 68,
	ENTRY_COLOR = 69,
	ENTRY_CSTRING = 75,
	ENTRY_CSTRING_UTF8 = 76,
	ENTRY_REGISTERED_STRING = 80,
	ENTRY_SCHEMA_FIRST = 1 << 24, /* ids of schemas and enums from here on */
};

/* Returns the id of the schema or enum, its own or a new one; 0: there is no room, or it is invalid. */
uint64_t nvtx_schema__register(const struct nvtx_schema_attributes *a);
uint64_t nvtx_schema__register_enum(const struct nvtx_enum_attributes *a);
/*
 * Writes "batch=32 loss=0.25" of the data. *name: the id of the schema's name, 0: it has none; *message: that of the
 * entry that is the event's message, 0: there is none. Returns buf.
 */
char *nvtx_schema__write(uint64_t schema, const void *data, size_t size, char *buf, size_t len, uint64_t *name,
			 uint64_t *message);
/* Reads a number of a predefined type. Returns its enum nvtx_payload_kind, NVTX_NO_PAYLOAD: it is none. */
uint32_t nvtx_entry__number(uint64_t type, const void *data, size_t size, uint64_t *bits);
