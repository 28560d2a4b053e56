// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Replaces reused pids and tids by ids as rows are read. */
#include <errno.h>

#include "core/event.h"
#include "trace/reader_priv.h"
#include "util/search.h"

void trace__set_tasks(struct trace *t, const struct trace_task *tasks, u32 n)
{
	t->tasks = tasks;
	t->n_tasks = n;
}

/* Returns the first task with the number, or NULL. */
static const struct trace_task *find(const struct trace *t, u32 number)
{
	u32 at = SEARCH(t->n_tasks, i, t->tasks[i].number < number);

	return at < t->n_tasks && t->tasks[at].number == number ? &t->tasks[at] : NULL;
}

/* Returns the last task of the number that had started at `time`, by bisection: some numbers are reused very often. */
static u32 id_at(const struct trace *t, const struct trace_task *first, u64 time)
{
	u32 low = (u32)(first - t->tasks), high = t->n_tasks;

	/* the first task counts as started at any time */
	while (low + 1 < high) {
		u32 middle = low + (high - low) / 2;

		if (t->tasks[middle].number == first->number && t->tasks[middle].start <= time)
			low = middle;
		else
			high = middle;
	}
	return t->tasks[low].id;
}

/* Indices of an event's time fields; columns of index -1 read as 0. */
struct moments {
	int start, flags;
};

static u64 value(const struct rows *r, int index, u32 row)
{
	const u64 *values = index < 0 ? NULL : rows__values(r, (u32)index);

	return values ? values[row] : index < 0 ? 0 : r->columns[index].constant;
}

/*
 * Returns a moment at which the task certainly had its number. own: the task is the row's own thread or process. That
 * may have ended, and its number may have been reused, before the end of its last span is recorded; it had its number
 * at the span's start. Other tasks, such as a waker, had their numbers at the span's end.
 */
static u64 moment_of(const struct rows *r, const struct moments *m, bool own, u32 row)
{
	u64 time = value(r, 0, row), start = value(r, m->start, row);

	if (!own || m->start < 0 || start > time ||
	    value(r, m->flags, row) & (EVENT_NO_DURATION | EVENT_STARTED_BEFORE))
		return time;
	return start;
}

static int renumber(struct rows *r, const struct trace *t, const struct moments *m, const struct schema_field *f,
		    struct bytes *room)
{
	const struct trace_task *first = NULL;
	bool own = !strcmp(f->name, "pid") || !strcmp(f->name, "tid");
	u64 *values, last = ~0ull;

	if (r->columns[f->index].is_constant && !find(t, (u32)r->columns[f->index].constant))
		return 0;
	values = rows__own_values(r, f->index, room);
	if (!values)
		return -ENOMEM;
	for (u32 i = 0; i < r->n_unfiltered; i++) {
		if (values[i] != last) {
			last = values[i];
			first = find(t, (u32)last);
		}
		if (first)
			values[i] = id_at(t, first, moment_of(r, m, own, i));
	}
	return 0;
}

int rows__renumber(struct rows *r, const struct trace *t)
{
	const struct schema_field *start = r->event->is_span ? schema_event__field(r->event, "start") : NULL;
	const struct schema_field *flags = schema_event__field(r->event, "flags");
	struct moments m = { start && flags ? (int)start->index : -1, flags ? (int)flags->index : -1 };
	u32 n = 0;
	int err = 0;

	for (u32 i = 0; !err && i < r->event->n && n < TASK_FIELDS_MAX; i++)
		if (schema_field__is_task(&r->event->fields[i]))
			err = renumber(r, t, &m, &r->event->fields[i], &r->tasks[n++]);
	return err;
}
