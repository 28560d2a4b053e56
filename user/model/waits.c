// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct wait_span {
	u64 start, end;
	u64 reach; /* the largest end of this span and of those before it */
	u32 rank, reason;
};

struct thread_waits {
	struct wait_span *spans;
	u32 n, allocated;
	bool sorted;
};

struct thread_key {
	u32 pid, tid;
};

struct reason_key {
	u16 event, probe;
	u32 text; /* id of the span's own name, 0: none */
};

struct waits {
	const struct names *names;
	const struct schema_event **kinds;
	struct map threads; /* struct thread_key -> struct thread_waits */
	struct map numbers; /* struct reason_key -> u32 */
	struct reason {
		char *text;
		char mark;
	} * reasons; /* reasons[number - 1] */
	u32 n_reasons;
};

/* By family: what says most about why a thread stands still. */
static const struct wait_class {
	const char *prefix; /* of the events' names */
	u32 rank;
	char mark;
} classes[] = {
	{ "gil_", 6, 'g' },  { "lock_", 5, 'l' }, { "nccl_", 4, 'n' }, { "syscall", 2, 's' },
	{ "disk_", 1, 'd' }, { "net_", 1, 'd' },  { "", 3, 'c' }, /* any other is a library's */
};

static const struct wait_class *class_of(const struct schema_event *e)
{
	const struct wait_class *c = classes;

	while (strncmp(e->name, c->prefix, strlen(c->prefix)))
		c++;
	return c;
}

static bool is_wait(const struct schema_event *e)
{
	return schema_event__field(e, "start") && EVENT_FAMILY(e->id) && strncmp(e->name, "sched_", 6);
}

int waits__new(struct waits **out, const struct schema *schema, const struct names *names)
{
	struct waits *w = calloc(1, sizeof(*w));
	u32 n = 0;

	*out = w;
	if (!w)
		return -ENOMEM;
	w->names = names;
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
	for (u32 i = 0; i < w->threads.n; i++)
		free(((struct thread_waits *)map__value(&w->threads, i))->spans);
	map__free(&w->threads);
	map__init(&w->threads, sizeof(struct thread_key), sizeof(struct thread_waits));
}

void waits__free(struct waits *w)
{
	if (!w)
		return;
	waits__forget(w);
	map__free(&w->threads);
	map__free(&w->numbers);
	for (u32 i = 0; i < w->n_reasons; i++)
		free(w->reasons[i].text);
	free(w->reasons);
	free(w->kinds);
	free(w);
}

const struct schema_event *const *waits__kinds(const struct waits *w)
{
	return w->kinds;
}

const char *waits__reason(const struct waits *w, u32 reason)
{
	return reason && reason <= w->n_reasons ? w->reasons[reason - 1].text : NULL;
}

char waits__mark(const struct waits *w, u32 reason)
{
	return reason && reason <= w->n_reasons ? w->reasons[reason - 1].mark : '?';
}

static const char *name_of(const struct waits *w, const struct schema_event *e, const struct reason_key *key)
{
	const char *name = key->text ? names__string(w->names, key->text) : NULL;

	if (!strncmp(e->name, "gil_", 4))
		return "GIL";
	if (!strncmp(e->name, "lock_", 5))
		return "lock";
	if (!name || !*name)
		name = key->probe ? names__probe(w->names, key->probe) : NULL;
	return name && *name ? name : e->name;
}

/* Names that are the same are one reason. 0: no memory. */
static u32 number_of(struct waits *w, const char *name, char mark)
{
	struct reason *bigger;

	for (u32 i = 0; i < w->n_reasons; i++)
		if (w->reasons[i].mark == mark && !strcmp(w->reasons[i].text, name))
			return i + 1;
	bigger = realloc(w->reasons, (w->n_reasons + 1) * sizeof(*bigger));
	if (!bigger)
		return 0;
	w->reasons = bigger;
	bigger[w->n_reasons] = (struct reason){ .text = strdup(name), .mark = mark };
	return bigger[w->n_reasons].text ? ++w->n_reasons : 0;
}

static u32 reason_of(struct waits *w, const struct schema_event *e, u16 probe, u32 text)
{
	struct reason_key key = { .event = e->id, .probe = probe, .text = text };
	u32 *number = map__get(&w->numbers, &key);

	if (!number)
		return 0;
	if (!*number)
		*number = number_of(w, name_of(w, e, &key), class_of(e)->mark);
	return *number;
}

static int add(struct waits *w, const struct thread_key *key, const struct wait_span *span)
{
	struct thread_waits *t = map__get(&w->threads, key);
	struct wait_span *bigger;
	u32 want;

	if (!t)
		return -ENOMEM;
	if (t->n == t->allocated) {
		want = t->allocated ? 2 * t->allocated : 16;
		bigger = realloc(t->spans, want * sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		t->spans = bigger;
		t->allocated = want;
	}
	t->spans[t->n++] = *span;
	t->sorted = false;
	return 0;
}

int waits__feed(struct waits *w, const struct rows *rows)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	const struct schema_field *name = schema_event__field(v.event, "name");
	struct common_fields f = common_fields__of(v.event);
	struct wait_span span = { .rank = class_of(v.event)->rank };
	struct thread_key key;
	int err = 0;

	if (name && strcmp(name->unit, "string"))
		name = NULL;
	for (; !err && v.i < rows__count(rows); v.i++) {
		key = (struct thread_key){ (u32)view__s64(&v, f.pid), (u32)view__s64(&v, f.tid) };
		span.start = (u64)view__s64(&v, f.start);
		span.end = (u64)view__s64(&v, f.time);
		if (span.end <= span.start)
			continue;
		span.reason = reason_of(w, v.event, (u16)view__s64(&v, f.probe), (u32)view__s64(&v, name));
		err = span.reason ? add(w, &key, &span) : -ENOMEM;
	}
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct wait_span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void sort(struct thread_waits *t)
{
	u64 reach = 0;

	qsort(t->spans, t->n, sizeof(*t->spans), by_start);
	for (u32 i = 0; i < t->n; i++) {
		if (t->spans[i].end > reach)
			reach = t->spans[i].end;
		t->spans[i].reach = reach;
	}
	t->sorted = true;
}

/* How many spans of the thread begin before `time`. */
static u32 begun_before(const struct thread_waits *t, u64 time)
{
	u32 low = 0, high = t->n;

	while (low < high) {
		u32 mid = low + (high - low) / 2;

		if (t->spans[mid].start < time)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The span that counts at `at`, NULL: none; *until: as long as that holds, at most what it was. */
static const struct wait_span *span_at(const struct thread_waits *t, u64 at, u64 *until)
{
	const struct wait_span *best = NULL, *s;
	u32 n = begun_before(t, at + 1);

	if (n < t->n && t->spans[n].start < *until)
		*until = t->spans[n].start;
	while (n-- > 0 && t->spans[n].reach > at) {
		s = &t->spans[n];
		if (s->end <= at)
			continue;
		if (!best || s->rank > best->rank)
			best = s;
		if (s->end < *until)
			*until = s->end;
	}
	return best;
}

int waits__explain(struct waits *w, u32 pid, u32 tid, u64 from, u64 to,
		   int (*fn)(u32 reason, u64 from, u64 to, void *arg), void *arg)
{
	struct thread_key key = { pid, tid };
	struct thread_waits *t = map__find(&w->threads, &key);
	const struct wait_span *s;
	u32 reason, last = 0;
	u64 until, begun = from;
	int err = 0;

	if (t && !t->sorted)
		sort(t);
	for (; !err && from < to; from = until) {
		until = to;
		s = t ? span_at(t, from, &until) : NULL;
		reason = s ? s->reason : 0;
		if (reason == last)
			continue;
		if (from > begun)
			err = fn(last, begun, from, arg);
		last = reason;
		begun = from;
	}
	return err || begun >= to ? err : fn(last, begun, to, arg);
}
