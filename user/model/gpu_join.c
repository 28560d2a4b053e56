// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Joins work with its launch: the correlation id leads to CUPTI's record of a call, which has a thread and times. These
 * lead to the outermost recorded call of that thread. Nothing is guessed: work without a match is not joined.
 *
 * Recent calls are stored by number and not by age: CUPTI may report work long after its call, when an earlier kernel
 * in its buffer has ended.
 */
#include "model/gpu_private.h"
#include "util/array.h"
#include "util/search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SPANS_MAX	 (512u << 10) /* 28 MiB */
#define DRIVERS_SOFT_MAX (256u << 10) /* 28 MiB */
#define DRIVERS_MAX	 (1u << 20) /* while their work has not arrived */

#define THREADS_TRIED 4096u /* to find a thread by its calls */

static bool contains(const struct gpu_span *s, u64 start, u64 end, u64 slack)
{
	return s->start <= start + slack && s->end + slack >= end;
}

/* Returns the index of the first span that ends at `end` or later. */
static u32 first_ending(const struct gpu_thread *t, u64 end)
{
	/* it is mostly one of the last spans */
	u32 from = t->n > 8 && t->spans[t->n - 8].end < end ? t->n - 7 : 0;

	return from + SEARCH(t->n - from, i, t->spans[from + i].end < end);
}

/* Removes the older half of all threads' spans. */
static void forget_spans(struct gpu_model *m)
{
	struct gpu_thread *t;
	u32 i, n;

	for (i = 0; i < m->threads.n; i++) {
		t = map__value(&m->threads, i);
		n = t->n / 2;
		memmove(t->spans, t->spans + n, (t->n - n) * sizeof(*t->spans));
		t->n -= n;
		m->spans -= n;
	}
}

static int make_room(struct gpu_thread *t)
{
	return array__room(t->spans, t->n) ? 0 : -ENOMEM;
}

int gpu_join__push(struct gpu_model *m, const struct gpu_host_item *c)
{
	struct gpu_thread_key key = { c->pid, c->tid };
	struct gpu_thread *t;
	const struct gpu_span *s = &c->span;
	u32 at, from;

	if (m->spans >= SPANS_MAX)
		forget_spans(m);
	t = map__get(&m->threads, &key);
	if (!t || make_room(t))
		return -ENOMEM;
	t->allocates |= s->request == REQUEST_ALLOCATION || s->request == REQUEST_RELEASE;
	at = first_ending(t, s->end);
	/* calls within a stored span are not stored */
	if (at < t->n && t->spans[at].start <= s->start)
		return 0;
	/* the calls nested in it end before it or in the same ns: it replaces them */
	from = at;
	while (from && t->spans[from - 1].start >= s->start)
		from--;
	while (at < t->n && t->spans[at].end == s->end)
		at++;
	memmove(t->spans + from + 1, t->spans + at, (t->n - at) * sizeof(*t->spans));
	t->spans[from] = *s;
	m->spans += 1 - (at - from);
	t->n += 1 - (at - from);
	return 0;
}

struct gpu_span *gpu_join__outermost(const struct gpu_model *m, u32 pid, u32 tid, u64 start, u64 end, u64 slack)
{
	struct gpu_thread_key key = { pid, tid };
	struct gpu_thread *t = map__find(&m->threads, &key);
	struct gpu_span *s, *best = NULL;
	u64 common, most = 0;
	u32 i;

	if (!t)
		return NULL;
	/* two successive calls may both contain the time within the slack: the larger overlap wins */
	for (i = first_ending(t, end > slack ? end - slack : 0); i < t->n && t->spans[i].start <= start + slack; i++) {
		s = &t->spans[i];
		if (!contains(s, start, end, slack))
			continue;
		common = (s->end < end ? s->end : end) - (s->start > start ? s->start : start) + 1;
		if (!best || common > most) {
			best = s;
			most = common;
		}
	}
	return best;
}

static u32 bucket_of(const struct gpu_drivers *d, u32 pid, u32 correlation)
{
	u32 h = correlation * 0x9e3779b1u + pid * 0x85ebca6bu;

	return (h ^ h >> 15) & (d->size - 1);
}

static void link_driver(struct gpu_drivers *d, u32 i)
{
	u32 *bucket = &d->buckets[bucket_of(d, d->ring[i].pid, d->ring[i].correlation)];

	d->ring[i].next = *bucket;
	*bucket = i + 1;
}

static int grow_drivers(struct gpu_drivers *d)
{
	u32 i, size = d->size ? d->size * 2 : 1024;
	struct gpu_driver *ring = malloc(size * sizeof(*ring));
	u32 *buckets = calloc(size, sizeof(*buckets));

	if (!ring || !buckets) {
		free(ring);
		free(buckets);
		return -ENOMEM;
	}
	for (i = 0; i < d->n; i++)
		ring[i] = d->ring[(d->first + i) & (d->size - 1)];
	free(d->ring);
	free(d->buckets);
	*d = (struct gpu_drivers){ .ring = ring, .buckets = buckets, .size = size, .n = d->n };
	for (i = 0; i < d->n; i++)
		link_driver(d, i);
	return 0;
}

/* Returns whether the call launched kernels, whose device records are expected. */
static bool is_launch(const struct gpu_driver *d)
{
	enum gpu_request request = gpu_call__request(d->function);

	return !d->result && IS_ONE_OF(request, REQUEST_KERNEL, REQUEST_GRAPH);
}

static void count_unseen(struct gpu_model *m, const struct gpu_driver *d)
{
	if (!d->used && gpu_model__is_selected(m, d->start, d->end) && is_launch(d))
		m->coverage.unseen++;
}

/* Calls are forgotten in their order, so that those remain that follow the last one with a device record. */
static void note_unended(struct gpu_model *m, const struct gpu_driver *d)
{
	bool counts = d->used || (is_launch(d) && gpu_model__is_selected(m, d->start, d->end));
	struct gpu_unended *u = counts ? map__get(&m->unended, &d->pid) : NULL;

	if (!u)
		return;
	if (d->used)
		*u = (struct gpu_unended){ 0 };
	else if (!u->launches++)
		*u = (struct gpu_unended){ 1, d->start, d->end, gpu_call__function(d->function) };
}

const struct gpu_unended *gpu_model__unended(const struct gpu_model *m, u32 pid)
{
	const struct gpu_unended *u = map__find(&m->unended, &pid);

	return u && u->launches ? u : NULL;
}

static void forget_oldest(struct gpu_model *m)
{
	struct gpu_drivers *d = &m->drivers;
	struct gpu_driver *old = &d->ring[d->first];
	u32 *at = &d->buckets[bucket_of(d, old->pid, old->correlation)];

	while (*at && *at != d->first + 1)
		at = &d->ring[*at - 1].next;
	if (*at)
		*at = old->next;
	count_unseen(m, old);
	note_unended(m, old);
	d->first = (d->first + 1) & (d->size - 1);
	d->n--;
}

int gpu_join__take_driver(struct gpu_model *m, const struct gpu_driver_item *item)
{
	struct gpu_drivers *d = &m->drivers;
	u32 i;

	if (d->n == d->size) {
		if (d->size >= DRIVERS_MAX || (d->size >= DRIVERS_SOFT_MAX && d->ring[d->first].used))
			forget_oldest(m);
		else if (grow_drivers(d))
			return -ENOMEM;
	}
	i = (d->first + d->n++) & (d->size - 1);
	d->ring[i] = (struct gpu_driver){
		.start = item->start,
		.end = item->end,
		.pid = item->pid,
		.ns_tid = item->tid,
		.correlation = item->correlation,
		.function = item->function,
		.result = item->result,
	};
	link_driver(d, i);
	return 0;
}

static struct gpu_driver *find_driver(const struct gpu_model *m, u32 pid, u32 correlation)
{
	const struct gpu_drivers *d = &m->drivers;
	u32 i;

	if (!d->n)
		return NULL;
	for (i = d->buckets[bucket_of(d, pid, correlation)]; i; i = d->ring[i - 1].next)
		if (d->ring[i - 1].pid == pid && d->ring[i - 1].correlation == correlation)
			return &d->ring[i - 1];
	return NULL;
}

bool gpu_join__has_driver(const struct gpu_model *m, u32 pid, u32 correlation)
{
	return find_driver(m, pid, correlation);
}

/*
 * Returns the call that contains this driver call, if only one thread of the process has such a call, else NULL. Used
 * for threads whose ids in their pid namespace are not known. *others: the process's threads with recorded calls.
 */
static struct gpu_span *find_only_call(const struct gpu_model *m, const struct gpu_driver *d, u64 slack, u32 *tid,
				       u32 *others)
{
	struct gpu_span *found = NULL, *s;
	u32 i, n = 0;

	*others = 0;
	for (i = 0; i < m->threads.n && i < THREADS_TRIED; i++) {
		const struct gpu_thread_key *key = map__key(&m->threads, i);

		if (key->pid != d->pid)
			continue;
		++*others;
		s = gpu_join__outermost(m, d->pid, key->tid, d->start, d->end, slack);
		n += !!s;
		if (s) {
			found = s;
			*tid = key->tid;
		}
	}
	return n == 1 ? found : NULL;
}

/*
 * Where only entries are recorded, returns the thread's last call before this driver call. If that call requests
 * something else or belongs to another driver call, the caller of this one was not recorded: NULL.
 */
static struct gpu_span *last_entry(const struct gpu_model *m, const struct gpu_driver *d, u64 slack)
{
	struct gpu_thread_key key = { d->pid, d->tid };
	const struct gpu_thread *t = map__find(&m->threads, &key);
	struct gpu_span *s;
	u32 n;

	if (!t)
		return NULL;
	n = first_ending(t, d->start + slack + 1);
	s = n ? &t->spans[n - 1] : NULL;
	return s && s->no_duration && !s->number && s->request == gpu_call__request(d->function) ? s : NULL;
}

/* Finds the call of a thread whose ids the trace does not relate, and sets d->tid. */
static struct gpu_span *find_thread(struct gpu_model *m, struct gpu_driver *d, u64 slack)
{
	const struct task *process = names__task(m->names, d->pid, 0);
	bool known = process && process->ns_pid, same = known && process->ns_pid == d->pid;
	struct gpu_thread_key key = { d->pid, d->ns_tid };
	struct gpu_span *s;
	u32 tid = 0, others;

	/* most likely the process has no pid namespace of its own, so its threads have these numbers */
	if (same || (!known && map__find(&m->threads, &key))) {
		d->tid = d->ns_tid;
		return gpu_join__outermost(m, d->pid, d->tid, d->start, d->end, slack);
	}
	s = find_only_call(m, d, slack, &tid, &others);
	if (s && !gpu_facts__set_tid(m, d->pid, d->ns_tid, tid))
		d->tid = tid;
	/* ns_tid is a plausible tid of the process, unless it is a number in another namespace */
	else if (!known && !others && d->ns_tid >= d->pid)
		d->tid = d->ns_tid;
	return s;
}

/*
 * Returns the call of libcuda that this call of libcudart made, for a libcudart that is linked into a library and can't
 * be probed.
 */
static struct gpu_span *made_by(const struct gpu_model *m, const struct gpu_driver *d, u64 slack)
{
	struct gpu_thread_key key = { d->pid, d->tid };
	const struct gpu_thread *t = map__find(&m->threads, &key);
	enum gpu_request request = gpu_call__request(d->function);

	if (!t || !(d->function & GPU_CALL_RUNTIME))
		return NULL;
	for (u32 i = first_ending(t, d->start); i < t->n && t->spans[i].end <= d->end + slack; i++)
		if (t->spans[i].start + slack >= d->start && t->spans[i].request == request && !t->spans[i].number)
			return &t->spans[i];
	return NULL;
}

static void resolve(struct gpu_model *m, struct gpu_driver *d)
{
	u64 slack = gpu_facts__slack(m, d->pid);
	struct gpu_span *s;

	d->tid = gpu_facts__tid(m, d->pid, d->ns_tid);
	s = d->tid ? gpu_join__outermost(m, d->pid, d->tid, d->start, d->end, slack) : find_thread(m, d, slack);
	if (!s && d->tid)
		s = made_by(m, d, slack);
	if (!s && d->tid)
		s = last_entry(m, d, slack);
	if (s && !s->number)
		s->number = ++m->launches;
	d->number = s ? s->number : ++m->launches;
	d->probed = s;
	if (s)
		d->span = *s;
}

const struct gpu_span *gpu_join__memory(const struct gpu_model *m, const struct gpu_allocation *a, u32 *tid)
{
	enum gpu_request request = a->release ? REQUEST_RELEASE : REQUEST_ALLOCATION;
	u64 slack = gpu_facts__slack(m, a->pid);
	const struct gpu_span *s;
	u32 i;

	for (i = 0; i < m->threads.n && i < THREADS_TRIED; i++) {
		const struct gpu_thread_key *key = map__key(&m->threads, i);

		if (key->pid != a->pid || !((const struct gpu_thread *)map__value(&m->threads, i))->allocates)
			continue;
		s = gpu_join__outermost(m, a->pid, key->tid, a->time, a->time, slack);
		if (s && s->request == request && s->object == a->address) {
			*tid = key->tid;
			return s;
		}
	}
	return NULL;
}

static void launch_of_span(const struct gpu_model *m, const struct gpu_span *s, struct gpu_launch *out)
{
	out->start = s->start;
	/* without a return, the end of CUPTI's call is the best estimate */
	if (!s->no_duration || out->end < s->start)
		out->end = s->end;
	out->function = gpu_host__function(m, s->event, s->probe);
	out->probed = true;
	out->stack = s->stack;
	out->gil = s->gil;
	out->ret = s->ret;
	out->stream = s->stream;
}

/* Work that is known from a call alone was launched by that call. */
static bool join_host(struct gpu_model *m, const struct gpu_work_item *w, struct gpu_launch *out)
{
	struct gpu_span *s = gpu_join__outermost(m, w->work.pid, w->tid, w->work.start, w->work.end, 0);

	if (!s)
		return false;
	if (!s->number)
		s->number = ++m->launches;
	*out = (struct gpu_launch){ .number = s->number, .pid = w->work.pid, .tid = w->tid };
	launch_of_span(m, s, out);
	return true;
}

bool gpu_join__launch(struct gpu_model *m, const struct gpu_work_item *w, struct gpu_launch *out)
{
	struct gpu_driver *d;

	if (w->call) {
		if (!w->call->span.number)
			w->call->span.number = ++m->launches;
		*out = (struct gpu_launch){ .number = w->call->span.number, .pid = w->call->pid, .tid = w->call->tid };
		launch_of_span(m, &w->call->span, out);
		return true;
	}
	if (w->work.host_time)
		return join_host(m, w, out);
	d = find_driver(m, w->work.pid, w->work.correlation);
	if (!d)
		return false;
	if (!d->number)
		resolve(m, d);
	d->used = true;
	*out = (struct gpu_launch){
		.number = d->number,
		.pid = d->pid,
		.tid = d->tid,
		.start = d->start,
		.end = d->end,
		.function = gpu_call__function(d->function),
		.cupti_function = gpu_call__function(d->function),
		.ret = d->result,
	};
	if (d->probed)
		launch_of_span(m, &d->span, out);
	return true;
}

void gpu_join__end(struct gpu_model *m)
{
	while (m->drivers.n)
		forget_oldest(m);
}

void gpu_join__free(struct gpu_model *m)
{
	u32 i;

	for (i = 0; i < m->threads.n; i++)
		free(((struct gpu_thread *)map__value(&m->threads, i))->spans);
	map__free(&m->threads);
	free(m->drivers.ring);
	free(m->drivers.buckets);
	m->drivers = (struct gpu_drivers){ 0 };
	m->spans = 0;
}
