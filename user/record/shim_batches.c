// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/shim_batches.h"

#include <string.h>

#include "record/family.h"

#define CLOCK_SLACK 10000000ULL /* ns by which times of a device may be ahead, by its clock's error */

/* Converts a time of the target; 0: the time is impossible. */
static u64 moment(const struct shim_raw *b, u64 time)
{
	time -= (u64)b->shift;
	return time >= b->started && time <= b->event.time + CLOCK_SLACK ? time : 0;
}

/* Fills the event's header. Returns false if the times are inconsistent. */
static bool fill_head(const struct shim_raw *b, const struct shim_record *r, u8 family, struct span *s, bool is_span)
{
	u64 end = r->end ? moment(b, r->end) : b->event.time, start = r->start ? moment(b, r->start) : end;

	if (!end || !start || start > end)
		return false;
	s->event = b->event;
	s->event.id = (u16)(family << 8 | (r->kind & 0xff));
	s->event.time = end;
	if (!b->own_tid || r->tid != b->own_tid)
		s->event.tid = r->tid;
	s->event.flags = b->own_tid && r->tid != b->own_tid ? EVENT_OWN_TID : 0;
	if (!r->end)
		s->event.flags |= EVENT_OPEN;
	if (r->kind & SHIM_STARTED_BEFORE)
		s->event.flags |= EVENT_STARTED_BEFORE;
	if (is_span)
		s->start = start;
	return true;
}

/*
 * Fills the event, at most SHIM_RECORD_MAX bytes and those of the largest form. Returns its size; 0: the record is
 * invalid. An older shim has a shorter body, a newer one a longer.
 */
static u32 fill(const struct shim_raw *b, const struct shim_record *r, const struct shim_form *form, u8 family,
		u8 *event)
{
	u32 has = r->size - (u32)sizeof(*r), body = has < form->body ? has : form->body, size = form->head + form->body;
	const char *data = (const char *)(r + 1);
	size_t len = form->text ? strnlen(data + body, has - body) : 0;

	memset(event, 0, size < sizeof(struct span) ? sizeof(struct span) : size);
	if (!fill_head(b, r, family, (struct span *)event, form->head == sizeof(struct span)))
		return 0;
	memcpy(event + form->head, data, body);
	memcpy(event + size, data + body, len);
	return size + (u32)len;
}

u32 shim_batch__each(const struct shim_raw *b, u32 size, const struct shim_form *forms, u32 n_forms, u8 family,
		     void (*fn)(void *arg, void *event, u32 size), void *arg)
{
	u64 event[RECORD_MAX / sizeof(u64)];
	u32 at = 0, end = size - (u32)sizeof(*b), n = 0, invalid = 0;

	while (end - at >= sizeof(struct shim_record)) {
		const struct shim_record *r = (const struct shim_record *)(b->data + at);
		u32 kind = r->kind & ~SHIM_STARTED_BEFORE, filled = 0;

		if (r->size < sizeof(*r) || r->size > end - at || r->size > SHIM_RECORD_MAX || r->size % 8)
			break;
		/*
		 * only the low byte of the event's id is the kind: a larger number would look like a known kind, or
		 * like an event that the schema lacks
		 */
		if (kind < n_forms && forms[kind].body)
			filled = fill(b, r, &forms[kind], family, (u8 *)event);
		if (filled)
			fn(arg, event, filled);
		invalid += !filled;
		at += r->size;
		n++;
	}
	return invalid + (b->records > n ? b->records - n : 0);
}
