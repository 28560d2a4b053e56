// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/sched_span.h"

#include <string.h>

#include "core/event.h"

static struct sched_column column(const struct rows *rows, const struct schema_field *field, u32 is_read)
{
	struct sched_column c = { .field = is_read && field && field->type != FIELD_TEXT && field->type != FIELD_TAIL ?
						   field :
						   NULL };

	if (c.field && rows)
		c.numbers = rows__numbers(rows, c.field);
	return c;
}

struct sched_span_fields sched_span_fields__of(const struct schema_event *e, const struct rows *rows, u32 parts)
{
	struct common_fields common = common_fields__of(e);
	bool on_cpu = !strcmp(e->name, "sched_run");
	FIELDS_OF(e, state, wake, signal, tracer);
	FIELDS_OF(e, waker, waker_pid, waker_tid, next_tid, allowed, priority);
	const struct schema_field *counted = schema_event__field(e, on_cpu ? "charged" : "waited");
	u32 next = on_cpu ? parts & SPAN_NEXT : 0;

	return (struct sched_span_fields){
		.event = e,
		.on_cpu = on_cpu,
		.pid = column(rows, common.pid, true),
		.tid = column(rows, common.tid, true),
		.start = column(rows, common.start, true),
		.time = column(rows, common.time, true),
		.flags = column(rows, common.flags, parts & SPAN_OPEN),
		.cpu = column(rows, common.cpu, parts & SPAN_CPU),
		.state = column(rows, state, parts & (on_cpu ? SPAN_LEFT : SPAN_WHY)),
		.wake = column(rows, wake, parts & SPAN_WHY),
		.signal = column(rows, signal, parts & SPAN_WHY),
		.tracer = column(rows, tracer, parts & SPAN_WHY),
		.waker = column(rows, waker, parts & SPAN_WAKER),
		.waker_pid = column(rows, waker_pid, parts & SPAN_WAKER),
		.waker_tid = column(rows, waker_tid, parts & SPAN_WAKER),
		.counted = column(rows, counted, parts & SPAN_COUNTED),
		.next = column(rows, next_tid, next),
		.allowed = column(rows, allowed, next),
		.priority = column(rows, priority, next),
	};
}

static inline u64 get(const struct view *v, const struct sched_column *c)
{
	return !c->field ? 0 : v->rows ? row_numbers__at(&c->numbers, v->i) : (u64)view__s64(v, c->field);
}

/* The event's wake is 0 for a thread that was not woken, and any time in a damaged file. */
static void add_wake(struct sched_span *s, const struct view *v, const struct sched_span_fields *f)
{
	bool waits = s->state != SCHED_RUNNABLE && s->state != SCHED_NEW;
	u64 wake = get(v, &f->wake);

	s->woken = waits && wake;
	if (!wake)
		wake = waits ? s->end : s->start;
	s->wake = wake < s->start ? s->start : wake > s->end ? s->end : wake;
	s->stopper = (u32)get(v, s->state == SCHED_STOPPED ? &f->signal : &f->tracer);
	s->waker_kind = (s64)get(v, &f->waker);
	if (s->waker_kind == WAKER_SOFTIRQ) {
		s->current_pid = (u32)get(v, &f->waker_pid);
		s->current_tid = (u32)get(v, &f->waker_tid);
		s->waker_pid = s->waker_tid = 0;
	} else {
		s->waker_pid = (u32)get(v, &f->waker_pid);
		s->waker_tid = (u32)get(v, &f->waker_tid);
		s->current_pid = s->current_tid = 0;
	}
}

void sched_span__decode(struct sched_span *s, const struct view *v, const struct sched_span_fields *f)
{
	s->pid = (u32)get(v, &f->pid);
	s->tid = (u32)get(v, &f->tid);
	s->start = s->wake = get(v, &f->start);
	s->end = get(v, &f->time);
	s->on_cpu = f->on_cpu;
	s->open = get(v, &f->flags) & EVENT_OPEN;
	s->cpu = (u16)get(v, &f->cpu);
	s->state = (s64)get(v, &f->state);
	s->counted = get(v, &f->counted);
	s->next_tid = (u32)get(v, &f->next);
	s->allowed = (u32)get(v, &f->allowed);
	s->priority = (u32)get(v, &f->priority);
	if (s->on_cpu)
		return;
	add_wake(s, v, f);
}

struct reading {
	const struct query *q;
	u32 parts;
	int (*fn)(const struct sched_span *s, void *arg);
	void *arg;
};

bool sched_span__cut(struct sched_span *s, struct sched_span *next, const struct names *n)
{
	const struct task *task;
	u64 since, until, before;

	names__held(n, s->pid, &since, &until);
	if (!s->on_cpu || s->tid != s->pid || until <= s->start || until >= s->end)
		return false;
	before = s->counted < until - s->start ? s->counted : until - s->start;
	task = names__process_at(n, names__number(n, s->pid), until);
	*next = *s;
	next->pid = next->tid = task ? task->id : s->pid;
	next->start = next->wake = s->end = until;
	next->counted -= before;
	s->counted = before;
	s->open = true;
	return true;
}

/* Emits a span, of a run in which a process executes another program the parts in the selected time. */
static int emit(const struct reading *r, struct sched_span s)
{
	struct sched_span next;
	int err = 0;

	if (!sched_span__cut(&s, &next, r->q->names))
		return r->fn(&s, r->arg);
	if (s.end > r->q->from)
		err = r->fn(&s, r->arg);
	return err || (r->q->to && next.start >= r->q->to) ? err : r->fn(&next, r->arg);
}

static int on_rows(const struct rows *rows, void *arg)
{
	const struct reading *r = arg;
	struct sched_span_fields f = sched_span_fields__of(rows__event(rows), rows, r->parts);
	struct sched_span s = { 0 };
	int err = 0;

	ROWS_WHILE(!err, v, rows) {
		sched_span__decode(&s, &v, &f);
		err = emit(r, s);
	}
	return err;
}

int sched_spans__read_off(const struct query *q, u32 parts, int (*fn)(const struct sched_span *s, void *arg), void *arg)
{
	struct reading r = { q, parts, fn, arg };

	return query__read_kind(q, "sched_off", on_rows, &r);
}

int sched_spans__read(const struct query *q, u32 parts, int (*fn)(const struct sched_span *s, void *arg), void *arg)
{
	struct reading r = { q, parts, fn, arg };
	int err = query__read_kind(q, "sched_run", on_rows, &r);

	return err ? err : sched_spans__read_off(q, parts, fn, arg);
}
