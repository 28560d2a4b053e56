/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kinds of events, their fields, families and options: from the BPF object's BTF when recording, from a trace's
 * first frame when reading.
 */
#pragma once

#include "core/event.h"

struct btf;

enum field_type {
	FIELD_UNSIGNED,
	FIELD_SIGNED,
	FIELD_FLOAT, /* IEEE 754, 4 or 8 bytes */
	FIELD_ENUM, /* a number whose values have names, see ->values */
	FIELD_TEXT, /* char[size], NUL-padded */
	FIELD_TAIL, /* the rest of the record, text without a NUL; last field, size 0 */
};

struct schema_enum_value {
	char *name;
	s64 value;
};

struct schema_enum {
	char *name;
	struct schema_enum_value *values;
	u32 n;
};

struct schema_field {
	char *name;
	char *doc; /* never NULL */
	char *unit; /* "ns", "bytes", "hex", "string", ...; "" if none */
	enum field_type type;
	u32 size; /* bytes */
	u32 offset; /* in the record */
	u32 index; /* in the event's fields */
	bool is_signed;
	const struct schema_enum *values; /* FIELD_ENUM only */
};

/* Whether an event is kept that was recorded in a pause, or outside of the cycle that is exported. */
enum event_role {
	EVENT_MEASURES, /* states what happened at a time: discarded in a pause and outside of the cycle */
	EVENT_CHANGES, /* one of a series, such as allocations and their releases: kept in a pause */
	EVENT_DESCRIBES, /* events of later times refer to it, as to a handle or the name of a file: kept in both */
	EVENT_LISTS, /* kept in both, too, but states what existed before tracing, or a name: exports show it at no time */
};

struct schema_event {
	char *name;
	char *doc;
	u16 id;
	enum event_role role;
	u32 size; /* of the record without its tail */
	bool is_span; /* has a start */
	bool is_call; /* has a start and a ret */
	struct schema_field *fields;
	u32 n;
};

struct schema_family {
	char *name;
	char *doc;
	u8 id;
	bool by_default;
	bool lean; /* of the default families, those of `-t lean`; not in a trace's schema */
};

struct schema_option { /* --FAMILY=OPTION, or --FAMILY-OPTION NUMBER */
	char *family;
	char *name;
	char *doc;
	char *number; /* unit of the number, "" for a switch; NULL if read from a trace, which does not store it */
};

struct schema {
	struct schema_family *families; /* sorted by id */
	u32 n_families;
	struct schema_event *events; /* sorted by id */
	u32 n_events;
	struct schema_enum *enums;
	u32 n_enums;
	struct schema_option *options;
	u32 n_options;
};

/* Returns negative errno and a message in err (of size err_len) if the tags are invalid or an id is used twice. */
int schema__from_btf(struct schema **out, const struct btf *btf, char *err, size_t err_len);
/* The JSON of "schema" in a trace's first frame (docs/format.md); malloc'ed, NULL: no memory. */
struct cJSON *schema__to_json(const struct schema *s);
/* From untrusted JSON: every size, offset and type is checked. */
int schema__from_json(struct schema **out, const struct cJSON *json, char *err, size_t err_len);
void schema__free(struct schema *s);

const struct schema_event *schema__event(const struct schema *s, const char *name);
const struct schema_event *schema__event_by_id(const struct schema *s, u16 id);
const struct schema_family *schema__family(const struct schema *s, const char *name);
const struct schema_family *schema__family_by_id(const struct schema *s, u8 id);
const struct schema_field *schema_event__field(const struct schema_event *e, const char *name);
/* Declares a variable for each named field, at most 8: FIELDS_OF(event, stack, bytes) declares stack and bytes. */
#define FIELDS_OF(event, ...) \
	const struct schema_field FIELDS_OF_N(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1)(event, __VA_ARGS__)
#define FIELDS_OF_N(a, b, c, d, e, f, g, h, n, ...) FIELDS_OF_##n
#define FIELDS_OF_1(event, name)		    *name = schema_event__field(event, #name)
#define FIELDS_OF_2(event, name, ...)		    FIELDS_OF_1(event, name), FIELDS_OF_1(event, __VA_ARGS__)
#define FIELDS_OF_3(event, name, ...)		    FIELDS_OF_1(event, name), FIELDS_OF_2(event, __VA_ARGS__)
#define FIELDS_OF_4(event, name, ...)		    FIELDS_OF_1(event, name), FIELDS_OF_3(event, __VA_ARGS__)
#define FIELDS_OF_5(event, name, ...)		    FIELDS_OF_1(event, name), FIELDS_OF_4(event, __VA_ARGS__)
#define FIELDS_OF_6(event, name, ...)		    FIELDS_OF_1(event, name), FIELDS_OF_5(event, __VA_ARGS__)
#define FIELDS_OF_7(event, name, ...)		    FIELDS_OF_1(event, name), FIELDS_OF_6(event, __VA_ARGS__)
#define FIELDS_OF_8(event, name, ...)		    FIELDS_OF_1(event, name), FIELDS_OF_7(event, __VA_ARGS__)
/* The name of an enum field's value, NULL if it has none. */
const char *schema_field__value_name(const struct schema_field *f, s64 value);

/* Is it the number of a process or thread? */
bool schema_field__is_task(const struct schema_field *f);
