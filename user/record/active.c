// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/active.h"

#include <stdlib.h>

#include "record/family.h"
#include "util/array.h"
#include "util/compare.h"

#define RECORDS_LATE 1000000000ULL /* ns */

void active__start(struct session *s, struct active_times *t, u64 now)
{
	t->read_until = t->ticked = now;
	session__begin_pause(s, now);
}

void active__add(struct active_times *t, u64 from, u64 to)
{
	if (from && to > from)
		array__push(t->list, t->n, (struct active_time){ from, to });
}

u64 active__tick(struct session *s, struct active_times *t, u64 now, bool *is_late)
{
	if (session__drained(s) != t->drained)
		t->read_until = t->ticked;
	t->drained = session__drained(s);
	t->ticked = now;
	*is_late = t->read_until < now - RECORDS_LATE;
	return *is_late ? t->read_until : now - RECORDS_LATE;
}

COMPARE_BY(by_start, struct active_time, ASCENDING(from))

/* Removes the first n times, which are written, and those that lie within one that has not ended yet. */
static void remove_first(struct active_times *t, u32 n, u64 open_since)
{
	u32 left = 0;

	for (u32 i = n; i < t->n; i++)
		if (t->list[i].from < open_since)
			t->list[left++] = t->list[i];
	t->n = left;
}

void active__write_pauses(struct session *s, struct active_times *t, u64 until, u64 open_since)
{
	u32 n = 0, next;
	u64 to;

	if (t->n)
		qsort(t->list, t->n, sizeof(*t->list), by_start);
	for (; n < t->n; n = next) {
		/* times that overlap are one interval */
		to = t->list[n].to;
		for (next = n + 1; next < t->n && t->list[next].from <= to; next++)
			to = t->list[next].to > to ? t->list[next].to : to;
		if (to > until)
			break;
		session__end_pause(s, t->list[n].from);
		session__begin_pause(s, to);
	}
	remove_first(t, n, open_since);
}

void active__write_open_pause(struct session *s, const struct active_times *t, u64 until)
{
	session__write_pause(s, t->n && t->list[0].from < until ? t->list[0].from : until);
}

void active__free(struct active_times *t)
{
	free(t->list);
}
