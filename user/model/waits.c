// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The calls and waits of threads, from the spans of all families but the scheduler's: which one explains an interval.
 */
#include "model/waits_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/syscalls.h"
#include "probes/sample/sample.h"
#include "util/array.h"

#define REASONS_MAX ((1u << 24) - 1)

struct reason_key {
	u16 event, probe;
	u32 value; /* id of the span's name; number of its system call; for a futex whether it is a lock */
};

struct waits {
	const struct names *names;
	const struct lock_futexes *locks;
	const struct map *chosen; /* keys are struct thread_key; NULL: all threads */
	const struct schema_event **kinds;
	struct map threads; /* struct thread_key -> struct thread_waits */
	struct map numbers; /* struct reason_key -> u32 */
	struct reason {
		char *text;
		enum activity_cause cause;
		const struct event_meaning *meaning;
	} * reasons; /* reasons[number - 1] */
	u32 n_reasons;
	bool has_details;
	struct wait_detail *details; /* of all spans */
	u32 n_details;
};

/* Used instead of a system call's number, for other waits of sample_off. */
enum { SAMPLE_WAIT_GIL = 1u << 16, SAMPLE_WAIT_FAULT };

/* A futex without a known owner may be a condition within a library's call: below RANK_CALL, as the call says more. */
#define CONDITION_RANK 4

/* An event of the waker, which has the wait of another thread */
static bool is_wake(const struct schema_event *e)
{
	return !strcmp(e->name, "sample_wake");
}

static bool is_wait(const struct schema_event *e)
{
	return (e->is_span || is_wake(e)) && EVENT_FAMILY(e->id) && !meaning__of(e)->is_no_wait;
}

int waits__new(struct waits **out, const struct schema *schema, const struct names *names,
	       const struct lock_futexes *locks, bool details)
{
	struct waits *w = calloc(1, sizeof(*w));
	u32 n = 0;

	*out = w;
	if (!w)
		return -ENOMEM;
	w->names = names;
	w->locks = locks;
	w->has_details = details;
	map__init(&w->threads, sizeof(struct thread_key), sizeof(struct thread_waits));
	map__init(&w->numbers, sizeof(struct reason_key), sizeof(u32));
	w->kinds = calloc(schema->n_events + 1, sizeof(*w->kinds));
	for (u32 i = 0; w->kinds && i < schema->n_events; i++)
		if (is_wait(&schema->events[i]))
			w->kinds[n++] = &schema->events[i];
	return w->kinds ? 0 : -ENOMEM;
}

void waits__forget(struct waits *w)
{
	MAP_EACH(struct thread_waits *t, &w->threads) {
		free(t->spans);
		free(t->segments);
	}
	map__free(&w->threads);
	free(w->details);
	w->details = NULL;
	w->n_details = 0;
}

void waits__free(struct waits *w)
{
	if (!w)
		return;
	waits__forget(w);
	MAPS_FREE(&w->threads, &w->numbers);
	for (u32 i = 0; i < w->n_reasons; i++)
		free(w->reasons[i].text);
	free(w->reasons);
	free(w->kinds);
	free(w);
}

void waits__choose(struct waits *w, const struct map *threads)
{
	w->chosen = threads;
}

const struct schema_event *const *waits__kinds(const struct waits *w)
{
	return w->kinds;
}

const char *waits__reason(const struct waits *w, u32 reason)
{
	return reason && reason <= w->n_reasons ? w->reasons[reason - 1].text : NULL;
}

enum activity_cause waits__cause(const struct waits *w, u32 reason)
{
	return reason && reason <= w->n_reasons ? w->reasons[reason - 1].cause : ACTIVITY_UNOBSERVED;
}

const struct event_meaning *waits__meaning(const struct waits *w, u32 reason)
{
	return reason && reason <= w->n_reasons ? w->reasons[reason - 1].meaning : NULL;
}

/* Returns the field with the number of a system call, which names the span; NULL: none. */
static const struct schema_field *call_number(const struct schema_event *e)
{
	FIELDS_OF(e, nr);

	return nr && nr->type == FIELD_ENUM ? nr : NULL;
}

static const char *name_of(const struct waits *w, const struct schema_event *e, const struct reason_key *key)
{
	const struct schema_field *nr = call_number(e);
	const char *name = nr	      ? syscalls__known_name(nr, key->value) :
			   key->value ? names__string(w->names, key->value) :
					NULL;

	if (meaning__of(e)->reason)
		return meaning__of(e)->reason;
	if (nr && key->value == SAMPLE_WAIT_GIL)
		return "GIL";
	if (nr && key->value == SAMPLE_WAIT_FAULT)
		return "page fault";
	if (meaning__of(e)->cause == ACTIVITY_LOCK)
		return key->value ? "lock" : "condition or join";
	if (!name || !*name)
		name = key->probe ? names__probe(w->names, key->probe) : NULL;
	return name && *name ? name : e->name;
}

static enum activity_cause cause_of(enum activity_cause cause, const struct reason_key *key, const char *name)
{
	switch (cause) {
	case ACTIVITY_LOCK:
		return key->value ? ACTIVITY_LOCK : ACTIVITY_CONDITION;
	case ACTIVITY_SYSCALL:
		return key->value == SAMPLE_WAIT_GIL   ? ACTIVITY_GIL :
		       key->value == SAMPLE_WAIT_FAULT ? ACTIVITY_FAULT :
							 activity_cause__of_syscall(name);
	case ACTIVITY_CUDA:
		return activity_cause__of_cuda(name);
	default:
		return cause;
	}
}

/* Returns the number of a reason; equal names and causes are one. 0: no memory. */
static u32 number_of(struct waits *w, const char *name, enum activity_cause cause, const struct event_meaning *meaning)
{
	for (u32 i = 0; i < w->n_reasons; i++)
		if (w->reasons[i].cause == cause && !strcmp(w->reasons[i].text, name))
			return i + 1;
	if (w->n_reasons == REASONS_MAX)
		return 0;
	if (!array__room(w->reasons, w->n_reasons))
		return 0;
	w->reasons[w->n_reasons] = (struct reason){ strdup(name), cause, meaning };
	return w->reasons[w->n_reasons].text ? ++w->n_reasons : 0;
}

static u32 reason_of(struct waits *w, const struct schema_event *e, u16 probe, u32 value)
{
	struct reason_key key = { .event = e->id, .probe = probe, .value = value };
	u32 *number = map__get(&w->numbers, &key);
	const struct event_meaning *meaning;
	const char *name;

	if (!number)
		return 0;
	if (!*number) {
		meaning = meaning__of(e);
		name = name_of(w, e, &key);
		*number = number_of(w, name, cause_of(meaning->cause, &key, name), meaning);
	}
	return *number;
}

static int add(struct waits *w, const struct thread_key *key, const struct wait_span *span)
{
	struct thread_waits *t = map__get(&w->threads, key);

	if (!t)
		return -ENOMEM;
	if (!array__push(t->spans, t->n, *span))
		return -ENOMEM;
	t->sorted = false;
	return 0;
}

/* Fields of details, by the families' names for them; NULL if the kind lacks one */
struct detail_fields {
	const struct schema_field *object, *futex, *stack, *waker_pid, *waker, *holder, *holder_stack;
};

static struct detail_fields detail_fields__of(const struct schema_event *e)
{
	/* sample_off has a file and, for a futex, its address */
	static const char *const objects[] = { "file", "lock", "gil" };
	struct detail_fields f = {
		.futex = schema_event__field(e, "futex"),
		.stack = schema_event__field(e, "stack"),
		.waker_pid = schema_event__field(e, "waker_pid"),
		.waker = schema_event__field(e, schema_event__field(e, "dropper") ? "dropper" : "waker_tid"),
		.holder = schema_event__field(e, "holder"),
		.holder_stack = schema_event__field(e, "holder_stack"),
	};

	for (size_t i = 0; !f.object && i < ARRAY_LEN(objects); i++)
		f.object = schema_event__field(e, objects[i]);
	return f;
}

/* Returns the index of the detail plus one; 0: none. *err: -ENOMEM */
static u32 add_detail(struct waits *w, const struct view *v, const struct detail_fields *f, u32 pid, int *err)
{
	u32 waker = (u32)view__s64(v, f->waker), holder = (u32)view__s64(v, f->holder);
	struct wait_detail d = {
		.object = (u64)view__s64(v, f->object),
		.stack = (u32)view__s64(v, f->stack),
		.by_tid = waker ? waker : holder,
		.by_stack = (u32)view__s64(v, f->holder_stack),
	};

	if (f->futex && view__s64(v, f->futex))
		d.object = (u64)view__s64(v, f->futex);
	if (!d.object && !d.stack && !d.by_tid)
		return 0;
	d.by_pid = !d.by_tid ? 0 : waker && f->waker_pid ? (u32)view__s64(v, f->waker_pid) : pid;
	if (!array__push(w->details, w->n_details, d)) {
		*err = -ENOMEM;
		return 0;
	}
	return w->n_details;
}

/* Adds the waits of the threads that these events' threads woke. */
static int feed_wakes(struct waits *w, const struct rows *rows)
{
	struct wait_span span = { .rank = meaning__of(rows__event(rows))->rank };
	FIELDS_OF(rows__event(rows), woken_pid, woken_tid, futex, pid, tid, stack, since, time);
	int err = 0;

	ROWS_WHILE(!err, v, rows) {
		struct thread_key key = { (u32)view__s64(&v, woken_pid), (u32)view__s64(&v, woken_tid) };
		struct wait_detail d = {
			.object = (u64)view__s64(&v, futex),
			.by_pid = (u32)view__s64(&v, pid),
			.by_tid = (u32)view__s64(&v, tid),
			.by_stack = (u32)view__s64(&v, stack),
		};

		span.start = (u64)view__s64(&v, since);
		span.end = (u64)view__s64(&v, time);
		if (span.end <= span.start || (w->chosen && !map__find(w->chosen, &key)))
			continue;
		span.reason = reason_of(w, v.event, 0, 0);
		if (!span.reason || (w->has_details && !array__push(w->details, w->n_details, d)))
			return -ENOMEM;
		span.detail = w->has_details ? w->n_details : 0;
		err = add(w, &key, &span);
	}
	return err;
}

struct sample_fields {
	bool is_sample; /* the events are sample_off */
	const struct schema_field *reason, *in_call;
};

static struct sample_fields sample_fields__of(const struct schema_event *e)
{
	return (struct sample_fields){
		.is_sample = !strcmp(e->name, "sample_off"),
		.reason = schema_event__field(e, "reason"),
		.in_call = schema_event__field(e, "in_call"),
	};
}

/*
 * Replaces *value, the number of a system call, if the thread waited for something else. Returns false if it did not
 * wait: the kernel gave its CPU to another thread or stopped it.
 */
static bool sample_value(const struct view *v, const struct sample_fields *f, u32 *value)
{
	s64 reason = view__s64(v, f->reason);

	if (reason == SAMPLE_GIL || reason == SAMPLE_FAULT) {
		*value = reason == SAMPLE_GIL ? SAMPLE_WAIT_GIL : SAMPLE_WAIT_FAULT;
		return true;
	}
	return reason != SAMPLE_PREEMPTED && view__s64(v, f->in_call);
}

int waits__feed(struct waits *w, const struct rows *rows)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	FIELDS_OF(v.event, name);
	const struct schema_field *owner, *futex;
	struct common_fields f = common_fields__of(v.event);
	const struct event_meaning *meaning = meaning__of(v.event);
	struct wait_span span = { .rank = meaning->rank, .uninterruptible = meaning->is_uninterruptible };
	struct sample_fields sample = sample_fields__of(v.event);
	struct detail_fields details = { 0 };
	struct thread_key key;
	bool is_lock, is_call;
	u32 value;
	int err = 0;

	if (is_wake(v.event))
		return feed_wakes(w, rows);
	if (name && strcmp(name->unit, "string"))
		name = NULL;
	is_call = call_number(v.event) != NULL;
	if (is_call)
		name = call_number(v.event);
	if (w->has_details)
		details = detail_fields__of(v.event);
	/* a futex is a lock if its event names the owner, or if it is used as one */
	owner = schema_event__field(v.event, "owner");
	futex = owner ? schema_event__field(v.event, "lock") : NULL;
	for (; !err && v.i < rows__count(rows); v.i++) {
		key = (struct thread_key){ (u32)view__s64(&v, f.pid), (u32)view__s64(&v, f.tid) };
		if (w->chosen && !map__find(w->chosen, &key))
			continue;
		span.start = (u64)view__s64(&v, f.start);
		span.end = (u64)view__s64(&v, f.time);
		if (span.end <= span.start || (is_call && syscalls__is_of_probe(name, view__s64(&v, name))))
			continue;
		is_lock = owner &&
			  (view__s64(&v, owner) || lock_futexes__has(w->locks, key.pid, (u64)view__s64(&v, futex)));
		if (owner)
			span.rank = is_lock ? meaning->rank : CONDITION_RANK;
		value = owner ? is_lock : (u32)view__s64(&v, name);
		if (sample.is_sample && !sample_value(&v, &sample, &value))
			continue;
		span.reason = reason_of(w, v.event, (u16)view__s64(&v, f.probe), value);
		if (!span.reason)
			return -ENOMEM;
		if (w->has_details)
			span.detail = add_detail(w, &v, &details, key.pid, &err);
		err = err ? err : add(w, &key, &span);
	}
	return err;
}

static struct wait_part part_of(const struct waits *w, const struct wait_span *s)
{
	return (struct wait_part){
		.reason = s ? s->reason : 0,
		.detail = s && s->detail ? &w->details[s->detail - 1] : NULL,
	};
}

struct thread_waits *waits__thread(const struct waits *w, u32 pid, u32 tid)
{
	struct thread_key key = { pid, tid };
	struct thread_waits *t = map__find(&w->threads, &key);

	if (t && !t->sorted)
		thread_waits__sort(t);
	return t;
}

int waits__explain(const struct waits *w, struct thread_waits *t, bool uninterruptible, u64 from, u64 to,
		   int (*fn)(const struct wait_part *part, void *arg), void *arg)
{
	struct wait_part part = { .from = from }, next;
	int err = t && t->failed ? -ENOMEM : 0;
	u64 until;

	for (; !err && from < to; from = until) {
		until = to;
		next = part_of(w, t ? thread_waits__at(t, uninterruptible, from, &until) : NULL);
		if (next.reason == part.reason && next.detail == part.detail)
			continue;
		part.to = from;
		if (part.from < from)
			err = fn(&part, arg);
		part = next;
		part.from = from;
	}
	part.to = to;
	return err || part.from >= to ? err : fn(&part, arg);
}
