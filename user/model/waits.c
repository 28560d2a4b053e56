// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/syscalls.h"

struct wait_span {
	u64 start, end;
	u64 reach; /* the largest end of this span and of those before it */
	u16 rank;
	bool blocked; /* counts only while the thread is uninterruptible */
	u32 reason;
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
	u32 text; /* id of the span's own name; the number of its system call; of a futex, is it a lock */
};

struct waits {
	const struct names *names;
	const struct lock_words *locks;
	const struct schema_event **kinds;
	struct map threads; /* struct thread_key -> struct thread_waits */
	struct map numbers; /* struct reason_key -> u32 */
	struct reason {
		char *text;
		char mark;
	} * reasons; /* reasons[number - 1] */
	u32 n_reasons;
};

/*
 * What says most about why a thread stands still has the highest rank. A disk's work goes on beside its thread
 * (readahead, writes without a sync): it is waited for only by one that is uninterruptible.
 */
static const struct wait_class {
	const char *prefix; /* of the events' names */
	u16 rank;
	bool blocked;
	char mark;
	const char *reason; /* NULL: of each span its own */
} classes[] = {
	{ "gil_", 9, false, 'g', "GIL" },
	{ "disk_io", 8, true, 'd', "disk" },
	{ "disk_fault", 8, true, 'd', "page fault (disk)" },
	{ "disk_stall", 8, false, 'd', "memory reclaim" },
	{ "lock_", 7, false, 'l', NULL },
	{ "nccl_", 6, false, 'n', NULL },
	{ "syscall", 1, false, 's', NULL },
	{ "net_connect", 2, false, 'd', "connect" },
	{ "cudadrv_", 4, false, 'c', NULL }, /* within a call of the runtime that one says more */
	{ "python_gc", 4, false, 'c', "garbage collection" },
	{ "", 5, false, 'c', NULL }, /* any other is a library's */
};

/* A futex of which nobody knows whose it is may be a condition in a library's call, which says more. */
#define CONDITION_RANK 3

/*
 * Sums and lifetimes: a thread may do anything in them. What devices did, and CUPTI's view of calls that have their own
 * events, is no thread's waiting either.
 */
static const char *const no_waits[] = { "sched_",    "disk_cache", "disk_task",		"net_close",	 "gil_hold",
					"gil_slice", "sample_",	   "python_thread_run", "python_import", "gpu_" };

static const struct wait_class *class_of(const struct schema_event *e)
{
	const struct wait_class *c = classes;

	while (strncmp(e->name, c->prefix, strlen(c->prefix)))
		c++;
	return c;
}

static bool is_wait(const struct schema_event *e)
{
	for (size_t i = 0; i < sizeof(no_waits) / sizeof(no_waits[0]); i++)
		if (!strncmp(e->name, no_waits[i], strlen(no_waits[i])))
			return false;
	return e->is_span && EVENT_FAMILY(e->id);
}

int waits__new(struct waits **out, const struct schema *schema, const struct names *names,
	       const struct lock_words *locks)
{
	struct waits *w = calloc(1, sizeof(*w));
	u32 n = 0;

	*out = w;
	if (!w)
		return -ENOMEM;
	w->names = names;
	w->locks = locks;
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

/* Of a system call the number names it. */
static const struct schema_field *call_number(const struct schema_event *e)
{
	const struct schema_field *nr = schema_event__field(e, "nr");

	return nr && nr->type == FIELD_ENUM ? nr : NULL;
}

static const char *name_of(const struct waits *w, const struct schema_event *e, const struct reason_key *key)
{
	const struct schema_field *nr = call_number(e);
	const char *name = nr	     ? schema_field__value_name(nr, key->text) :
			   key->text ? names__string(w->names, key->text) :
				       NULL;

	if (class_of(e)->reason)
		return class_of(e)->reason;
	if (!strncmp(e->name, "lock_", 5))
		return key->text ? "lock" : "condition or join";
	if (nr && name && !strncmp(name, "SYS_", 4))
		name += 4;
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
	const struct schema_field *owner, *word;
	struct common_fields f = common_fields__of(v.event);
	const struct wait_class *class = class_of(v.event);
	struct wait_span span = { .rank = class->rank, .blocked = class->blocked };
	struct thread_key key;
	bool is_lock, is_call;
	int err = 0;

	if (name && strcmp(name->unit, "string"))
		name = NULL;
	is_call = call_number(v.event) != NULL;
	if (is_call)
		name = call_number(v.event);
	/* a futex that says whose it is, is a lock; another is one if it is used as one */
	owner = schema_event__field(v.event, "owner");
	word = owner ? schema_event__field(v.event, "lock") : NULL;
	for (; !err && v.i < rows__count(rows); v.i++) {
		key = (struct thread_key){ (u32)view__s64(&v, f.pid), (u32)view__s64(&v, f.tid) };
		span.start = (u64)view__s64(&v, f.start);
		span.end = (u64)view__s64(&v, f.time);
		if (span.end <= span.start || (is_call && syscalls__is_of_probe(name, view__s64(&v, name))))
			continue;
		is_lock = owner &&
			  (view__s64(&v, owner) || lock_words__has(w->locks, key.pid, (u64)view__s64(&v, word)));
		if (owner)
			span.rank = is_lock ? class->rank : CONDITION_RANK;
		span.reason =
			reason_of(w, v.event, (u16)view__s64(&v, f.probe), owner ? is_lock : (u32)view__s64(&v, name));
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
static const struct wait_span *span_at(const struct thread_waits *t, bool blocked, u64 at, u64 *until)
{
	const struct wait_span *best = NULL, *s;
	u32 n = begun_before(t, at + 1);

	if (n < t->n && t->spans[n].start < *until)
		*until = t->spans[n].start;
	while (n-- > 0 && t->spans[n].reach > at) {
		s = &t->spans[n];
		if (s->end <= at || (s->blocked && !blocked))
			continue;
		if (!best || s->rank > best->rank)
			best = s;
		if (s->end < *until)
			*until = s->end;
	}
	return best;
}

int waits__explain(struct waits *w, u32 pid, u32 tid, bool blocked, u64 from, u64 to,
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
		s = t ? span_at(t, blocked, from, &until) : NULL;
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
