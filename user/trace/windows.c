// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The windows of time that a trace's figures are of: spans are cut at their edges as they are read. */
#include <errno.h>

#include "core/event.h"
#include "trace/format.h"
#include "trace/reader_priv.h"
#include "util/search.h"

void trace__set_windows(struct trace *t, const struct trace_window *windows, u32 n)
{
	t->windows = windows;
	t->n_windows = n;
}

bool windows__apply(const struct trace *t, const struct trace_filter *f, const struct schema_event *e)
{
	return t->n_windows && (f->from || f->to || (f->in_windows && f->in_windows(e)));
}

bool windows__leave_out(const struct trace *t, u64 begin, u64 end)
{
	u32 i = (u32)SEARCH(t->n_windows, k, t->windows[k].to <= begin);

	/* the window i ends after the span has begun, and there is one before it */
	return i && i < t->n_windows && end < t->windows[i].from;
}

/* Cuts [start, time] to the windows that it overlaps; outside of all windows it is unchanged. */
static void cut_to_windows(const struct trace *t, u64 *start, u64 *time, u64 *flags)
{
	u32 i = (u32)SEARCH(t->n_windows, k, t->windows[k].to <= *start);
	u32 end = (u32)SEARCH(t->n_windows, k, t->windows[k].from < *time);
	const struct trace_window *last;

	if (i >= end)
		return;
	if (*start < t->windows[i].from)
		*start = t->windows[i].from;
	last = &t->windows[end - 1];
	if (*time > last->to) {
		*time = last->to;
		*flags |= EVENT_OPEN;
	}
}

int rows__cut(struct rows *r, const struct trace *t, const u8 *entry)
{
	const struct schema_field *start = r->event->is_span ? schema_event__field(r->event, "start") : NULL;
	const struct schema_field *flags = schema_event__field(r->event, "flags");
	u64 *starts, *times, *all_flags;

	if (!t->n_windows || !start || !flags || !start->index || !flags->index)
		return 0;
	if (t->n_windows == 1 && get64(entry + KIND_FIRST) >= t->windows[0].from &&
	    get64(entry + KIND_LAST) <= t->windows[0].to)
		return 0;
	/* decode columns that are relative to the time before the time is cut */
	for (u32 i = 0; i < r->event->n; i++)
		if (!r->columns[i].is_constant && r->columns[i].view.transform == COLUMN_BEFORE)
			rows__values(r, i);
	starts = rows__own_values(r, start->index, &r->cut[0]);
	times = rows__own_values(r, 0, &r->cut[1]);
	all_flags = rows__own_values(r, flags->index, &r->cut[2]);
	if (!starts || !times || !all_flags)
		return -ENOMEM;
	for (u32 i = 0; i < r->n_unfiltered; i++)
		cut_to_windows(t, &starts[i], &times[i], &all_flags[i]);
	return 0;
}
