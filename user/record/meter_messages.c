// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads messages of a meter's child. They are untrusted: the library that the child has loaded may have made them. */
#include "record/meter_private.h"

#include <string.h>

#include "schema/schema.h"
#include "util/utf8.h"

/* Is it a record that such a child may make? Texts have an id of the trace, and tails have any length. */
static bool is_valid(const struct schema *schema, u8 family, const struct event *e, u32 size)
{
	const struct schema_event *kind;

	if (size < sizeof(*e) || EVENT_FAMILY(e->id) != family)
		return false;
	kind = schema__event_by_id(schema, e->id);
	if (!kind || kind->size != size)
		return false;
	for (u32 i = 0; i < kind->n; i++)
		if (kind->fields[i].type == FIELD_TAIL || !strcmp(kind->fields[i].unit, "string"))
			return false;
	return true;
}

u32 meter_message__each(const struct meter_message *m, size_t bytes, const struct schema *schema, u8 family,
			void (*fn)(void *arg, struct event *e, u32 size), void *arg)
{
	u64 record[RECORD_MAX / sizeof(u64)];
	struct event *e = (struct event *)record;
	u32 head[2], refused = 0;
	size_t at = 0;

	while (bytes - at >= sizeof(head)) {
		memcpy(head, m->data + at, sizeof(head));
		at += sizeof(head);
		if (head[0] > bytes - at || head[0] > sizeof(record))
			break;
		memcpy(record, m->data + at, head[0]);
		if (is_valid(schema, family, e, head[0]))
			fn(arg, e, head[0]);
		else
			refused++;
		if (bytes - at < ((head[0] + 7) & ~7U))
			break;
		at += (head[0] + 7) & ~7U;
	}
	return refused;
}

void meter_message__text(const struct meter_message *m, size_t bytes, char out[METER_TEXT_MAX])
{
	char text[METER_TEXT_MAX];
	size_t len = strnlen(m->data, bytes < sizeof(text) ? bytes : sizeof(text) - 1);

	memcpy(text, m->data, len);
	text[len] = '\0';
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = ' ';
	utf8__copy(out, METER_TEXT_MAX, text);
}
