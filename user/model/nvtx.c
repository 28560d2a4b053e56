// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/nvtx.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/shim_nvtx.h"
#include "util/array.h"

struct label_entry {
	u32 number;
	u32 pid; /* a process that uses it */
};

static int add_label(struct nvtx *n, const struct nvtx_label *l, u32 pid, u32 *number)
{
	u32 before = n->labels.n;
	struct label_entry *entry = map__get(&n->labels, l);

	if (!entry)
		return -ENOMEM;
	if (n->labels.n > before)
		*entry = (struct label_entry){ .number = before, .pid = pid };
	*number = entry->number;
	return 0;
}

static int add_range(struct nvtx *n, const struct nvtx_range *r)
{
	struct nvtx_thread *t = map__get(&n->threads, &r->thread);

	if (!t)
		return -ENOMEM;
	if (n->n == NVTX_RANGES_MAX) {
		n->left_out++;
		return 0;
	}
	t->thread = r->thread;
	n->n++;
	return array__push(t->ranges, t->n, *r) ? 0 : -ENOMEM;
}

static int on_ranges(const struct rows *rows, void *arg)
{
	struct common_fields f = common_fields__of(rows__event(rows));
	FIELDS_OF(rows__event(rows), name, domain, kind, level);
	struct nvtx *n = arg;
	int err = 0;

	ROWS_WHILE(!err, v, rows) {
		struct nvtx_label label = { (u64)view__s64(&v, domain), (u64)view__s64(&v, name) };
		struct nvtx_range r = {
			.thread = { (u32)view__s64(&v, f.pid), (u32)view__s64(&v, f.tid) },
			.start = (u64)view__s64(&v, f.start),
			.end = (u64)view__s64(&v, f.time),
			.is_started = view__s64(&v, kind) == NVTX_STARTED,
			.is_open = view__s64(&v, f.flags) & EVENT_OPEN,
			.level = (u32)view__s64(&v, level),
		};

		err = add_label(n, &label, r.thread.pid, &r.label) ?: add_range(n, &r);
	}
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct nvtx_range *x = a, *y = b;

	return x->start != y->start ? (x->start < y->start ? -1 : 1) : x->end < y->end ? 1 : x->end > y->end ? -1 : 0;
}

static int add_part(struct nvtx_thread *t, u64 from, u32 range)
{
	if (t->n_parts && t->parts[t->n_parts - 1].from == from) {
		t->parts[t->n_parts - 1].range = range;
		return 0;
	}
	if (t->n_parts && t->parts[t->n_parts - 1].range == range)
		return 0;
	return array__push(t->parts, t->n_parts, (struct nvtx_part){ from, range }) ? 0 : -ENOMEM;
}

/* Ranges that are open while the parts are made: the innermost one is the last to begin. */
struct open_ranges {
	u32 *list;
	u32 n;
};

/* Ends the ranges that end up to `time`, the earliest first: those of other domains may outlive inner ones. */
static int end_ranges(struct nvtx_thread *t, struct open_ranges *open, u64 time)
{
	int err = 0;

	while (!err) {
		u32 first = NVTX_OUTSIDE;
		u64 end;

		for (u32 i = open->n; i-- > 0;)
			if (t->ranges[open->list[i]].end <= time &&
			    (first == NVTX_OUTSIDE || t->ranges[open->list[i]].end < t->ranges[open->list[first]].end))
				first = i;
		if (first == NVTX_OUTSIDE)
			break;
		end = t->ranges[open->list[first]].end;
		memmove(&open->list[first], &open->list[first + 1], (open->n - first - 1) * sizeof(u32));
		open->n--;
		err = add_part(t, end, open->n ? open->list[open->n - 1] : NVTX_OUTSIDE);
	}
	return err;
}

#define OPEN_MAX 512

static int make_parts(struct nvtx_thread *t)
{
	struct open_ranges open = {};
	int err = 0;

	qsort(t->ranges, t->n, sizeof(*t->ranges), by_start);
	for (u32 i = 0; !err && i < t->n; i++) {
		err = end_ranges(t, &open, t->ranges[i].start);
		t->ranges[i].around = open.n ? open.list[open.n - 1] : NVTX_OUTSIDE;
		/* ranges that any thread may end can be open in any number */
		if (open.n == OPEN_MAX)
			continue;
		if (!err && !array__push(open.list, open.n, i))
			err = -ENOMEM;
		if (!err)
			err = add_part(t, t->ranges[i].start, i);
	}
	if (!err)
		err = end_ranges(t, &open, ~0ULL);
	free(open.list);
	return err;
}

int nvtx__read(struct nvtx *n, const struct query *q)
{
	int err;

	*n = (struct nvtx){ .q = q };
	map__init(&n->labels, sizeof(struct nvtx_label), sizeof(struct label_entry));
	map__init(&n->threads, sizeof(struct thread_key), sizeof(struct nvtx_thread));
	err = query__read_kind(q, "nvtx_range", on_ranges, n);
	MAP_EACH(struct nvtx_thread *t, &n->threads)
		if (!err)
			err = make_parts(t);
	return err;
}

void nvtx__free(struct nvtx *n)
{
	MAP_EACH(struct nvtx_thread *t, &n->threads) {
		free(t->ranges);
		free(t->parts);
	}
	MAPS_FREE(&n->labels, &n->threads);
}

const char *nvtx__label(const struct nvtx *n, u32 label, char *buf, size_t size)
{
	const struct nvtx_label *l = map__key(&n->labels, label);
	const struct label_entry *entry = map__value(&n->labels, label);

	return names__nvtx_label(n->q->names, entry->pid, l->domain, l->name, buf, size);
}

const struct nvtx_thread *nvtx__thread(const struct nvtx *n, struct thread_key thread)
{
	return map__find(&n->threads, &thread);
}

/* The index of the part that contains the time; n_parts: none does. */
static u32 part_at(const struct nvtx_thread *t, u64 time)
{
	u32 from = 0, to = t->n_parts;

	while (from < to) {
		u32 middle = from + (to - from) / 2;

		if (t->parts[middle].from <= time)
			from = middle + 1;
		else
			to = middle;
	}
	return from ? from - 1 : t->n_parts;
}

u32 nvtx_thread__at(const struct nvtx_thread *t, u64 time)
{
	u32 part = t ? part_at(t, time) : 0;

	return t && part < t->n_parts ? t->parts[part].range : NVTX_OUTSIDE;
}

int nvtx_thread__split(const struct nvtx_thread *t, u64 from, u64 to,
		       int (*fn)(const struct nvtx_range *r, u64 from, u64 to, void *arg), void *arg)
{
	int err = 0;

	while (!err && from < to) {
		u32 part = t ? part_at(t, from) : 0, next;
		u64 end = to;

		next = !t ? 0 : part < t->n_parts ? part + 1 : 0;
		if (t && next < t->n_parts && t->parts[next].from < end)
			end = t->parts[next].from;
		err = fn(t && part < t->n_parts && t->parts[part].range != NVTX_OUTSIDE ?
				 &t->ranges[t->parts[part].range] :
				 NULL,
			 from, end, arg);
		from = end;
	}
	return err;
}

bool nvtx__number(u32 kind, u64 bits, bool *is_double, double *d, s64 *n)
{
	u32 half = (u32)bits;
	float f;

	*is_double = kind == NVTX_DOUBLE || kind == NVTX_FLOAT;
	memcpy(d, &bits, sizeof(*d));
	memcpy(&f, &half, sizeof(f));
	if (kind == NVTX_FLOAT)
		*d = (double)f;
	*n = kind == NVTX_INT32 ? (s64)(s32)half : kind == NVTX_UINT32 ? (s64)half : (s64)bits;
	if (!*is_double)
		*d = kind == NVTX_UINT64 ? (double)bits : (double)*n;
	return kind >= NVTX_UINT64 && kind <= NVTX_FLOAT;
}

bool nvtx__value(const struct view *v, const struct schema_field *f, bool *is_double, double *d, s64 *n)
{
	bool is_payload = !strcmp(f->name, "payload");

	if (strncmp(v->event->name, "nvtx_", 5) != 0 || (!is_payload && strcmp(f->name, "value") != 0))
		return false;
	return nvtx__number((u32)view__get(v, is_payload ? "payload_kind" : "value_kind"), (u64)view__s64(v, f),
			    is_double, d, n);
}
