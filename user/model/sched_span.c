// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/sched_span.h"

#include <string.h>

#include "core/event.h"

static const struct schema_field *field(const struct schema_event *e, bool is_present, const char *name)
{
	return is_present ? schema_event__field(e, name) : NULL;
}

struct sched_span_fields sched_span_fields__of(const struct schema_event *e, u32 parts)
{
	bool on_cpu = !strcmp(e->name, "sched_run");
	struct sched_span_fields f = {
		.event = e,
		.common = common_fields__of(e),
		.on_cpu = on_cpu,
		.state = field(e, parts & (on_cpu ? SPAN_LEFT : SPAN_WHY), "state"),
		.wake = field(e, parts & SPAN_WHY, "wake"),
		.waker = field(e, parts & SPAN_WAKER, "waker"),
		.waker_pid = field(e, parts & SPAN_WAKER, "waker_pid"),
		.waker_tid = field(e, parts & SPAN_WAKER, "waker_tid"),
		.counted = field(e, parts & SPAN_COUNTED, on_cpu ? "charged" : "waited"),
		.next = field(e, on_cpu && parts & SPAN_NEXT, "next_tid"),
		.allowed = field(e, on_cpu && parts & SPAN_NEXT, "allowed"),
		.priority = field(e, on_cpu && parts & SPAN_NEXT, "priority"),
	};

	f.common.flags = parts & SPAN_OPEN ? f.common.flags : NULL;
	f.common.cpu = parts & SPAN_CPU ? f.common.cpu : NULL;
	return f;
}

/* Skips the call for the many fields that are not requested. */
static inline u64 get(const struct view *v, const struct schema_field *f)
{
	return f ? (u64)view__s64(v, f) : 0;
}

/* The event's wake is 0 for a thread that was not woken, and any time in a damaged file. */
static void add_wake(struct sched_span *s, const struct view *v, const struct sched_span_fields *f)
{
	bool waits = s->state != SCHED_RUNNABLE && s->state != SCHED_NEW;
	u64 wake = get(v, f->wake);

	s->woken = waits && wake;
	if (!wake)
		wake = waits ? s->end : s->start;
	s->wake = wake < s->start ? s->start : wake > s->end ? s->end : wake;
	s->waker_kind = (s64)get(v, f->waker);
	s->waker_pid = (u32)get(v, f->waker_pid);
	s->waker_tid = (u32)get(v, f->waker_tid);
}

void sched_span__decode(struct sched_span *s, const struct view *v, const struct sched_span_fields *f)
{
	s->pid = (u32)get(v, f->common.pid);
	s->tid = (u32)get(v, f->common.tid);
	s->start = s->wake = get(v, f->common.start);
	s->end = get(v, f->common.time);
	s->on_cpu = f->on_cpu;
	s->open = get(v, f->common.flags) & EVENT_OPEN;
	s->cpu = (u16)get(v, f->common.cpu);
	s->state = (s64)get(v, f->state);
	s->counted = get(v, f->counted);
	s->next_tid = (u32)get(v, f->next);
	s->allowed = (u32)get(v, f->allowed);
	s->priority = (u32)get(v, f->priority);
	if (s->on_cpu)
		return;
	add_wake(s, v, f);
}

struct reading {
	u32 parts;
	int (*fn)(const struct sched_span *s, void *arg);
	void *arg;
};

static int on_rows(const struct rows *rows, void *arg)
{
	const struct reading *r = arg;
	struct sched_span_fields f = sched_span_fields__of(rows__event(rows), r->parts);
	struct sched_span s = { 0 };
	int err = 0;

	ROWS_WHILE(!err, v, rows) {
		sched_span__decode(&s, &v, &f);
		err = r->fn(&s, r->arg);
	}
	return err;
}

int sched_spans__read_off(const struct query *q, u32 parts, int (*fn)(const struct sched_span *s, void *arg), void *arg)
{
	struct reading r = { parts, fn, arg };

	return query__read_kind(q, "sched_off", on_rows, &r);
}

int sched_spans__read(const struct query *q, u32 parts, int (*fn)(const struct sched_span *s, void *arg), void *arg)
{
	struct reading r = { parts, fn, arg };
	int err = query__read_kind(q, "sched_run", on_rows, &r);

	return err ? err : sched_spans__read_off(q, parts, fn, arg);
}
