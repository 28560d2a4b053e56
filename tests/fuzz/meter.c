// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads any bytes as a message of the child of a meter: records, of which two kinds are valid, or a text. */
#include <string.h>

#include "fuzz.h"
#include "record/meter_private.h"
#include "schema/schema.h"

#define FAMILY_ID 0x0d

static char name[] = "number", no_unit[] = "", of_text[] = "string";
static struct schema_field number = { .name = name, .unit = no_unit, .type = FIELD_UNSIGNED, .size = 8 };
static struct schema_field text_id = { .name = name, .unit = of_text, .type = FIELD_UNSIGNED, .size = 8 };
static struct schema_field tail = { .name = name, .unit = no_unit, .type = FIELD_TAIL };
/* sorted by id; a child may make only the first two */
static struct schema_event events[] = {
	{ .name = name, .id = FAMILY_ID << 8 | 1, .size = 32, .fields = &number, .n = 1 },
	{ .name = name, .id = FAMILY_ID << 8 | 2, .size = 45, .fields = &number, .n = 1 },
	{ .name = name, .id = FAMILY_ID << 8 | 3, .size = 32, .fields = &text_id, .n = 1 },
	{ .name = name, .id = FAMILY_ID << 8 | 4, .size = 32, .fields = &tail, .n = 1 },
};
static const struct schema schema = { .events = events, .n_events = sizeof(events) / sizeof(*events) };

static void check(void *arg, struct event *e, u32 size)
{
	u64 sum = 0;

	(void)arg;
	for (u32 i = 0; i < size; i++)
		sum += ((const u8 *)e)[i];
	fuzz__use(sum);
	if (e->id == events[0].id ? size != events[0].size : e->id != events[1].id || size != events[1].size)
		abort();
}

static void check_text(const struct meter_message *m, size_t bytes)
{
	char text[METER_TEXT_MAX];

	meter_message__text(m, bytes, text);
	if (strnlen(text, sizeof(text)) == sizeof(text))
		abort();
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p < ' ')
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct meter_message *m;

	if (size < METER_HEAD || size > sizeof(*m))
		return 0;
	/* memory of just this size, so that a sanitizer notices a read behind it */
	m = malloc(size);
	if (!m)
		return 0;
	memcpy(m, data, size);
	fuzz__use(meter_message__each(m, size - METER_HEAD, &schema, FAMILY_ID, check, NULL));
	check_text(m, size - METER_HEAD);
	free(m);
	return 0;
}
