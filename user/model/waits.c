// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/syscalls.h"
#include "util/array.h"
#include "util/search.h"

struct wait_span {
	u64 start, end;
	u32 reason : 24;
	u32 rank : 7;
	u32 blocked : 1; /* used only while the thread is uninterruptible */
	u32 detail; /* index of the details plus one, 0: none */
};

#define REASONS_MAX ((1u << 24) - 1)

/* From here to the next one the same span counts. */
struct wait_segment {
	u64 from;
	u32 span[2]; /* index plus one, 0: none; [1] is of an uninterruptible thread */
};

struct thread_waits {
	struct wait_span *spans;
	u32 n;
	struct wait_segment *segments; /* of the spans, by time; made at the first question */
	u32 n_segments;
	bool sorted;
	bool failed; /* there was no memory for the segments */
};

struct reason_key {
	u16 event, probe;
	u32 text; /* id of the span's own name; the number of its system call; of a futex, is it a lock */
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
	} * reasons; /* reasons[number - 1] */
	u32 n_reasons;
	bool has_details;
	struct wait_detail *details; /* of all spans that have any */
	u32 n_details;
};

#define RANK_CALL 5
#define RANKS	  10

/*
 * The span that explains best why a thread does not run has the highest rank. A disk's work runs beside its thread
 * (readahead, writes without a sync): only an uninterruptible thread waits for it.
 */
static const struct wait_class {
	const char *prefix; /* of the events' names, which begin with their family's */
	u16 rank;
	bool blocked;
	enum activity_cause cause; /* ACTIVITY_CUDA and ACTIVITY_SYSCALL: by the span's name */
	const char *reason; /* NULL: of each span its own */
} classes[] = {
	{ "gil_", 9, false, ACTIVITY_GIL, "GIL" },
	{ "disk_io", 8, true, ACTIVITY_DISK, "disk" },
	{ "disk_fault", 8, true, ACTIVITY_FAULT, "page fault (disk)" },
	{ "disk_stall", 8, false, ACTIVITY_RECLAIM, "memory reclaim" },
	{ "lock_", 7, false, ACTIVITY_LOCK, NULL },
	{ "nccl_", 6, false, ACTIVITY_NCCL, NULL },
	{ "syscall", 1, false, ACTIVITY_SYSCALL, NULL },
	{ "net_connect", 2, false, ACTIVITY_CONNECT, "connect" },
	{ "cuda_", RANK_CALL, false, ACTIVITY_CUDA, NULL },
	{ "cudadrv_", 4, false, ACTIVITY_CUDA, NULL }, /* within a runtime call, that call says more */
	{ "python_gc", 4, false, ACTIVITY_GC, "garbage collection" },
	{ "", RANK_CALL, false, ACTIVITY_LIBRARY, NULL }, /* any other is a library's */
};

/* A futex with an unknown owner may be a condition in a library's call, which says more. */
#define CONDITION_RANK 3

/*
 * Sums and lifetimes are no waits: a thread may do anything meanwhile. Neither is device work, nor CUPTI's view of
 * calls that have events of their own.
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
	for (size_t i = 0; i < ARRAY_LEN(no_waits); i++)
		if (!strncmp(e->name, no_waits[i], strlen(no_waits[i])))
			return false;
	return e->is_span && EVENT_FAMILY(e->id);
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
	for (u32 i = 0; i < w->threads.n; i++) {
		struct thread_waits *t = map__value(&w->threads, i);

		free(t->spans);
		free(t->segments);
	}
	map__free(&w->threads);
	map__init(&w->threads, sizeof(struct thread_key), sizeof(struct thread_waits));
	w->n_details = 0;
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
	free(w->details);
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

/* A system call is named by its number. */
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

static enum activity_cause cause_of(const struct wait_class *class, const struct reason_key *key, const char *name)
{
	switch (class->cause) {
	case ACTIVITY_LOCK:
		return key->text ? ACTIVITY_LOCK : ACTIVITY_CONDITION;
	case ACTIVITY_SYSCALL:
		return activity_cause__of_syscall(name);
	case ACTIVITY_CUDA:
		return activity_cause__of_cuda(name);
	default:
		return class->cause;
	}
}

/* Equal names are one reason. 0: no memory. */
static u32 number_of(struct waits *w, const char *name, enum activity_cause cause)
{
	for (u32 i = 0; i < w->n_reasons; i++)
		if (w->reasons[i].cause == cause && !strcmp(w->reasons[i].text, name))
			return i + 1;
	if (w->n_reasons == REASONS_MAX)
		return 0;
	if (!array__room(w->reasons, w->n_reasons))
		return 0;
	w->reasons[w->n_reasons] = (struct reason){ .text = strdup(name), .cause = cause };
	return w->reasons[w->n_reasons].text ? ++w->n_reasons : 0;
}

static u32 reason_of(struct waits *w, const struct schema_event *e, u16 probe, u32 text)
{
	struct reason_key key = { .event = e->id, .probe = probe, .text = text };
	u32 *number = map__get(&w->numbers, &key);
	const char *name;

	if (!number)
		return 0;
	if (!*number) {
		name = name_of(w, e, &key);
		*number = number_of(w, name, cause_of(class_of(e), &key, name));
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

/* Fields of details, by the names that the families give them; NULL where the kind has none. */
struct detail_fields {
	const struct schema_field *object, *stack, *waker_pid, *waker, *holder, *holder_stack;
};

static struct detail_fields detail_fields__of(const struct schema_event *e)
{
	static const char *const objects[] = { "lock", "gil", "file" };
	struct detail_fields f = {
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

/* The index of the detail plus one; 0: it has none. -ENOMEM through err. */
static u32 add_detail(struct waits *w, const struct view *v, const struct detail_fields *f, u32 pid, int *err)
{
	u32 waker = (u32)view__s64(v, f->waker), holder = (u32)view__s64(v, f->holder);
	struct wait_detail d = {
		.object = (u64)view__s64(v, f->object),
		.stack = (u32)view__s64(v, f->stack),
		.by_tid = waker ? waker : holder,
		.by_stack = (u32)view__s64(v, f->holder_stack),
	};

	if (!d.object && !d.stack && !d.by_tid)
		return 0;
	d.by_pid = !d.by_tid ? 0 : waker && f->waker_pid ? (u32)view__s64(v, f->waker_pid) : pid;
	if (!array__push(w->details, w->n_details, d)) {
		*err = -ENOMEM;
		return 0;
	}
	return w->n_details;
}

int waits__feed(struct waits *w, const struct rows *rows)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	const struct schema_field *name = schema_event__field(v.event, "name");
	const struct schema_field *owner, *futex;
	struct common_fields f = common_fields__of(v.event);
	const struct wait_class *class = class_of(v.event);
	struct wait_span span = { .rank = class->rank, .blocked = class->blocked };
	struct detail_fields details = { 0 };
	struct thread_key key;
	bool is_lock, is_call;
	int err = 0;

	if (name && strcmp(name->unit, "string"))
		name = NULL;
	is_call = call_number(v.event) != NULL;
	if (is_call)
		name = call_number(v.event);
	if (w->has_details)
		details = detail_fields__of(v.event);
	/* a futex whose event names the owner is a lock; another is one if it is used as one */
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
			span.rank = is_lock ? class->rank : CONDITION_RANK;
		span.reason =
			reason_of(w, v.event, (u16)view__s64(&v, f.probe), owner ? is_lock : (u32)view__s64(&v, name));
		if (!span.reason)
			return -ENOMEM;
		if (w->has_details)
			span.detail = add_detail(w, &v, &details, key.pid, &err);
		err = err ? err : add(w, &key, &span);
	}
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct wait_span *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	/* the inner one last */
	return x->end > y->end ? -1 : x->end < y->end;
}

#define NONE (~0u)

/* The spans of a thread that are open at a moment, which goes forward. */
struct open_spans {
	const struct thread_waits *thread;
	u32 next; /* the first that has not begun */
	u32 top[RANKS][2]; /* by rank and `blocked`: the one that began last, NONE: none; it may have ended */
	u32 *below; /* of each span: the next one of its list */
};

static void open_span(struct open_spans *o)
{
	const struct wait_span *s = &o->thread->spans[o->next];
	u32 *top = &o->top[s->rank][s->blocked];

	o->below[o->next] = *top;
	*top = o->next++;
}

/* Of one list; those that have ended leave it when they come to its top. */
static u32 top_at(struct open_spans *o, u32 rank, u32 blocked, u64 time)
{
	u32 *top = &o->top[rank][blocked];

	while (*top != NONE && o->thread->spans[*top].end <= time)
		*top = o->below[*top];
	return *top;
}

/* The span that counts at the time: of the highest rank, of these the one that began last. */
static u32 best_at(struct open_spans *o, bool blocked, u64 time)
{
	for (u32 rank = RANKS; rank-- > 0;) {
		u32 any = top_at(o, rank, 0, time), other = blocked ? top_at(o, rank, 1, time) : NONE;

		if (any == NONE || (other != NONE && other > any))
			any = other;
		if (any != NONE)
			return any;
	}
	return NONE;
}

static int add_segment(struct thread_waits *t, u64 from, const u32 best[2])
{
	struct wait_segment segment = { .from = from, .span = { best[0] + 1, best[1] + 1 } };

	if (t->n_segments && !memcmp(t->segments[t->n_segments - 1].span, segment.span, sizeof(segment.span)))
		return 0;
	return array__push(t->segments, t->n_segments, segment) ? 0 : -ENOMEM;
}

/* What counts changes where a span begins, and where one that counts ends. */
static int cut_segments(struct thread_waits *t, struct open_spans *o)
{
	u64 time = t->n ? t->spans[0].start : 0;
	int err = 0;

	while (!err && time != ~0ull) {
		u32 best[2];

		while (o->next < t->n && t->spans[o->next].start <= time)
			open_span(o);
		for (u32 i = 0; i < 2; i++)
			best[i] = best_at(o, i, time);
		err = add_segment(t, time, best);
		time = o->next < t->n ? t->spans[o->next].start : ~0ull;
		for (u32 i = 0; i < 2; i++)
			if (best[i] != NONE && t->spans[best[i]].end < time)
				time = t->spans[best[i]].end;
	}
	return err;
}

static void sort(struct thread_waits *t)
{
	struct open_spans o = { .thread = t, .below = calloc(t->n, sizeof(*o.below)) };

	memset(o.top, 0xff, sizeof(o.top));
	t->n_segments = 0;
	qsort(t->spans, t->n, sizeof(*t->spans), by_start);
	t->failed = !o.below || cut_segments(t, &o);
	t->sorted = true;
	free(o.below);
}

/*
 * The span with the highest rank at `at`, NULL: none; *until: the time up to which that holds, at most its old
 * value.
 */
static const struct wait_span *span_at(const struct thread_waits *t, bool blocked, u64 at, u64 *until)
{
	u32 n = SEARCH(t->n_segments, i, t->segments[i].from <= at);
	u32 span = n ? t->segments[n - 1].span[blocked] : 0;

	if (n < t->n_segments && t->segments[n].from < *until)
		*until = t->segments[n].from;
	return span ? &t->spans[span - 1] : NULL;
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
		sort(t);
	return t;
}

int waits__explain(const struct waits *w, struct thread_waits *t, bool blocked, u64 from, u64 to,
		   int (*fn)(const struct wait_part *part, void *arg), void *arg)
{
	struct wait_part part = { .from = from }, next;
	int err = t && t->failed ? -ENOMEM : 0;
	u64 until;

	for (; !err && from < to; from = until) {
		until = to;
		next = part_of(w, t ? span_at(t, blocked, from, &until) : NULL);
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
