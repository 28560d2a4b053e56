// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/memory_sums.h"

#include <errno.h>
#include <string.h>

#include "core/shim.h"

static u32 where_of(u32 memory)
{
	switch (memory) {
	case GPU_MEMORY_PINNED:
		return MEMORY_PINNED;
	case GPU_MEMORY_MANAGED:
	case GPU_MEMORY_MANAGED_STATIC:
		return MEMORY_MANAGED;
	case GPU_MEMORY_DEVICE:
	case GPU_MEMORY_DEVICE_STATIC:
	case GPU_MEMORY_ARRAY:
		return MEMORY_ON_DEVICE;
	default:
		return MEMORY_ELSEWHERE;
	}
}

static struct memory_sum *sum_of(struct memory_sums *m, const struct gpu_allocation *a)
{
	struct memory_key key = { a->pid, a->device, where_of(a->memory) };
	u32 known = m->sums.n;
	struct memory_sum *s;

	if (key.where == MEMORY_PINNED)
		key.device = GPU_NO_DEVICE;
	s = map__get(&m->sums, &key);
	if (s && m->sums.n > known)
		s->index = known;
	return s;
}

static struct memory_site *site_of(struct memory_sums *m, const struct memory_block *b)
{
	struct memory_site_key key = { b->sum, b->stack, b->stack ? 0 : b->tid };

	return map__get(&m->sites, &key);
}

/* Adds the live blocks to the peaks of their sites. */
static int note_peak(struct memory_sums *m, const struct memory_sum *s)
{
	MAP_EACH(const struct memory_block *b, &m->blocks) {
		struct memory_site *p;

		if (!b->live || b->sum != s->index)
			continue;
		p = site_of(m, b);
		if (!p)
			return -ENOMEM;
		p->peak += b->bytes;
		p->peak_n++;
	}
	return 0;
}

/* `before` bytes were live up to this change. Bytes that are live when the selected time begins count for the peak. */
static int note_change(struct memory_sums *m, struct memory_sum *s, u64 before, u64 time)
{
	const u64 from = m->args->from;

	if (m->at_peaks)
		return ++s->changes == s->peak_change ? note_peak(m, s) : 0;
	if (time >= from && s->peak_time < from) {
		s->peak = before;
		s->peak_time = from;
		s->peak_change = s->changes;
	}
	s->changes++;
	if (s->live > s->peak) {
		s->peak = s->live;
		s->peak_time = time;
		s->peak_change = s->changes;
	}
	return 0;
}

/* Sets the peak of sums that do not change in the selected time. */
static void close_peaks(struct memory_sums *m)
{
	MAP_EACH(struct memory_sum *s, &m->sums) {
		if (s->peak_time >= m->args->from)
			continue;
		s->peak = s->live;
		s->peak_time = m->args->from;
		s->peak_change = s->changes;
	}
}

static void release(struct memory_sums *m, struct memory_block *b)
{
	struct memory_sum *s = map__value(&m->sums, b->sum);

	b->live = false;
	s->live -= b->bytes;
	s->live_n--;
}

static int on_release(struct memory_sums *m, const struct gpu_allocation *a, struct memory_block *b)
{
	struct memory_sum *s;
	u64 before;

	if (!b || !b->live) {
		m->unseen += !m->at_peaks && !m->args->tids.n && a->time >= m->args->from;
		return 0;
	}
	s = map__value(&m->sums, b->sum);
	before = s->live;
	release(m, b);
	s->releases += a->time >= m->args->from;
	return note_change(m, s, before, a->time);
}

static int count(struct memory_sums *m, struct memory_sum *s, const struct memory_block *b)
{
	struct memory_site *p = site_of(m, b);

	if (!p)
		return -ENOMEM;
	s->allocations++;
	s->bytes += b->bytes;
	s->largest = b->bytes > s->largest ? b->bytes : s->largest;
	p->allocations++;
	p->bytes += b->bytes;
	return 0;
}

static int on_allocate(struct memory_sums *m, const struct gpu_allocation *a, struct memory_block *b)
{
	struct memory_sum *s = sum_of(m, a);
	u64 before;
	int err = 0;

	if (!s)
		return -ENOMEM;
	before = s->live;
	/* the release of the block at this address was not recorded */
	if (b->live)
		release(m, b);
	*b = (struct memory_block){ a->bytes, a->time, s->index, a->stack, a->tid, true };
	s->live += a->bytes;
	s->live_n++;
	s->host_time = s->host_time || a->host_time;
	if (!m->at_peaks && a->time >= m->args->from)
		err = count(m, s, b);
	return err ? err : note_change(m, s, before, a->time);
}

static int note_pool(struct memory_sums *m, const struct gpu_allocation *a)
{
	struct memory_pool_key key = { a->pool, a->pid, a->device };
	struct memory_pool *p = map__get(&m->pools, &key);

	if (!p)
		return -ENOMEM;
	p->size = a->pool_size > p->size ? a->pool_size : p->size;
	p->used = a->pool_used > p->used ? a->pool_used : p->used;
	return 0;
}

static int on_allocation(const struct gpu_allocation *a, void *arg)
{
	struct memory_block_key key = { a->address, a->pid, 0 };
	struct memory_sums *m = arg;
	struct memory_block *b;
	int err = 0;

	if (a->pool && !m->at_peaks)
		err = note_pool(m, a);
	if (err || a->release)
		return err ? err : on_release(m, a, map__find(&m->blocks, &key));
	if (!trace_ids__have(&m->args->tids, a->tid))
		return 0;
	b = map__get(&m->blocks, &key);
	return b ? on_allocate(m, a, b) : -ENOMEM;
}

static int on_call(const struct gpu_host_call *c, void *arg)
{
	struct memory_sums *m = arg;
	const char *name = c->event ? c->event->name : "";

	if (c->nested || c->open || c->ret == 0 || c->end < m->args->from)
		return 0;
	if (!trace_ids__have(&m->args->tids, c->tid))
		return 0;
	m->failed += !strcmp(name, "cuda_alloc") || !strcmp(name, "cudadrv_alloc");
	return 0;
}

/* Reads from the trace's start, because blocks may be allocated before the selected time. */
static int read_once(struct memory_sums *m, bool at_peaks)
{
	const struct gpu_listener first = { .allocation = on_allocation, .call = on_call };
	const struct gpu_listener second = { .allocation = on_allocation };

	m->at_peaks = at_peaks;
	return gpu_model__read(m->model, 0, m->args->to, &m->args->pids, at_peaks ? &second : &first, m,
			       at_peaks ? NULL : &m->coverage);
}

static int note_end(struct memory_sums *m)
{
	MAP_EACH(struct memory_block *b, &m->blocks) {
		struct memory_site *p = b->live ? site_of(m, b) : NULL;

		if (!b->live)
			continue;
		if (!p)
			return -ENOMEM;
		p->live += b->bytes;
		p->oldest = p->live_n && p->oldest < b->time ? p->oldest : b->time;
		p->live_n++;
	}
	return 0;
}

/* Resets what the first reading counted, for a second one that records the blocks at each peak. */
static void rewind_all(struct memory_sums *m)
{
	MAP_EACH(struct memory_sum *s, &m->sums)
		s->live = s->live_n = s->changes = s->releases = 0;
	for (u32 i = 0; i < m->blocks.n; i++)
		((struct memory_block *)map__value(&m->blocks, i))->live = false;
}

int memory_sums__read(struct memory_sums *m, const struct query *args)
{
	int err;

	*m = (struct memory_sums){ .args = args };
	map__init(&m->sums, sizeof(struct memory_key), sizeof(struct memory_sum));
	map__init(&m->blocks, sizeof(struct memory_block_key), sizeof(struct memory_block));
	map__init(&m->sites, sizeof(struct memory_site_key), sizeof(struct memory_site));
	map__init(&m->pools, sizeof(struct memory_pool_key), sizeof(struct memory_pool));
	err = gpu_model__new(&m->model, args->trace, args->names);
	/* after the trace's end no block is known to be live */
	if (!err && args->from <= trace__summary(args->trace)->last)
		err = read_once(m, false);
	if (err || !m->sums.n)
		return err;
	close_peaks(m);
	rewind_all(m);
	err = read_once(m, true);
	return err ? err : note_end(m);
}

void memory_sums__free(struct memory_sums *m)
{
	MAPS_FREE(&m->sums, &m->blocks, &m->sites, &m->pools);
	gpu_model__free(m->model);
	m->model = NULL;
}
