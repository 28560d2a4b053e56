// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An allocation belongs to the call that was open, whose name is known when it ends. So that the peak need not be read
 * again, each process numbers the rises of its peak: a block was allocated at the last one if it was allocated before
 * and freed after it.
 */
#include "model/torch_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/torch_private.h"
#include "util/array.h"
#include "util/search.h"

/* Allocations of a thread that wait for a call around an operator that only allocates. */
#define WAITING_MAX 4096u
/* In one call; where there are more, they are the operator's own. */
#define WAITING_IN_CALL 256u

/* Operators that only allocate, or return memory that others fill */
static bool allocates_only(const char *name)
{
	return !strncmp(name, "aten::empty", 11) || !strncmp(name, "aten::new_empty", 15) ||
	       !strcmp(name, "aten::resize_");
}

static struct torch_memory_sum *sum_of(struct torch_memory_sums *m, u32 pid)
{
	u32 known = m->sums.n;
	struct torch_memory_sum *s = map__get(&m->sums, &pid);

	if (s && m->sums.n > known && known < TORCH_MEMORY_LINES)
		s->slots = calloc(TORCH_MEMORY_SLOTS, sizeof(*s->slots));
	return s;
}

/* The time line has the largest value of each slot, and the last one of slots without a change. */
static void write_slot(const struct torch_memory_sums *m, struct torch_memory_sum *s, u64 time, u64 before)
{
	u64 i = time > m->first ? (time - m->first) / m->slot_ns : 0;

	if (!s->slots)
		return;
	i = i < TORCH_MEMORY_SLOTS ? i : TORCH_MEMORY_SLOTS - 1;
	while (s->slot < i)
		s->slots[++s->slot] = before;
	if (s->live > s->slots[s->slot])
		s->slots[s->slot] = s->live;
}

/* To be called before the site changes. */
static void note_peak(struct torch_memory_site *site, const struct torch_memory_sum *s)
{
	if (site->peaks == s->peaks)
		return;
	site->peaks = s->peaks;
	site->peak = site->live;
	site->peak_n = site->live_n;
}

static struct torch_memory_site *site_of(struct torch_memory_sums *m, u32 pid, u32 name, u32 stack)
{
	struct torch_memory_site_key key = { pid, name, stack };
	u32 known = m->sites.n;
	struct torch_memory_site *site = map__get(&m->sites, &key);

	if (site && m->sites.n > known)
		site->index = known;
	return site;
}

/* The call to which the allocation belongs is known now. 0 or -ENOMEM. */
static int resolve(struct torch *t, u32 pid, const struct torch_mark *mark, u32 name, u32 stack)
{
	struct torch_address address = { mark->address, pid };
	struct torch_memory_sum *s = sum_of(t->sums, pid);
	struct torch_memory_site *site = site_of(t->sums, pid, name, stack);
	struct torch_block *block = mark->is_freed ? NULL : map__find(&t->memory, &address);
	u64 bytes = (u64)mark->bytes;

	if (!s || !site)
		return -ENOMEM;
	note_peak(site, s);
	site->allocations++;
	site->bytes += bytes;
	if (mark->peaks < s->peaks && (!mark->is_freed || mark->freed_peaks >= s->peaks)) {
		site->peak += bytes;
		site->peak_n++;
	}
	/* another block may have the address by now */
	if (!block || block->serial != mark->serial)
		return 0;
	block->site = site;
	site->live += bytes;
	site->live_n++;
	return 0;
}

/* Names the marks, from the first one on, after the call. 0 or -ENOMEM. */
static int resolve_from(struct torch *t, u32 pid, struct torch_thread *thread, u32 first, u32 name, u32 stack)
{
	int err = 0;

	for (u32 i = first; !err && i < thread->n_marks; i++)
		if (!thread->marks[i].is_release)
			err = resolve(t, pid, &thread->marks[i], name, stack);
	thread->n_marks = first;
	return err;
}

/* Of operators that only allocate and are in no other call, the memory is their own. */
static int resolve_waiting(struct torch *t, u32 pid, struct torch_thread *thread)
{
	u32 n = 0;
	int err = 0;

	for (u32 i = 0; i < thread->n_marks; i++) {
		const struct torch_mark *mark = &thread->marks[i];

		if (mark->name && mark->is_release)
			continue;
		if (!err && mark->name)
			err = resolve(t, pid, mark, mark->name, mark->stack);
		else
			thread->marks[n++] = *mark;
	}
	thread->n_marks = n;
	thread->marks_max = n > WAITING_MAX / 2 ? 2 * n : WAITING_MAX;
	return err;
}

static struct torch_mark *mark_of(struct torch *t, u32 pid, const struct torch_block *block)
{
	struct torch_thread *thread = torch__thread(t, pid, block->tid);
	u32 i = thread ? (u32)SEARCH(thread->n_marks, k, thread->marks[k].serial < block->serial) : 0;

	if (!thread || i == thread->n_marks || thread->marks[i].serial != block->serial || thread->marks[i].is_release)
		return NULL;
	return &thread->marks[i];
}

static void release(struct torch *t, u32 pid, struct torch_memory_sum *s, const struct torch_block *block, u64 time)
{
	struct torch_mark *mark = block->site ? NULL : mark_of(t, pid, block);
	u64 before = s->live;

	s->live -= block->bytes;
	s->live_n--;
	write_slot(t->sums, s, time, before);
	if (block->site) {
		note_peak(block->site, s);
		block->site->live -= block->bytes;
		block->site->live_n--;
	} else if (mark) {
		mark->is_freed = true;
		mark->freed_peaks = s->peaks;
	}
}

static void allocate(struct torch *t, struct torch_memory_sum *s, u64 bytes, u64 time)
{
	u64 before = s->live;

	s->live += bytes;
	s->live_n++;
	s->allocations++;
	s->bytes += bytes;
	if (s->live > s->peak) {
		s->peak = s->live;
		s->peak_time = time;
		s->peaks++;
	}
	write_slot(t->sums, s, time, before);
}

static int count(struct torch *t, u32 name, const struct torch_mark *mark)
{
	struct torch_memory_operator *o = map__get(&t->sums->operators, &name);

	if (!o)
		return -ENOMEM;
	if (mark->is_release) {
		o->releases++;
		o->freed += 0 - (u64)mark->bytes;
	} else {
		o->allocations++;
		o->allocated += (u64)mark->bytes;
	}
	return 0;
}

/* Adds the mark to the innermost call; without one it is of no operator. */
static int add_mark(struct torch *t, u32 pid, struct torch_thread *thread, const struct torch_mark *mark)
{
	int err = 0;

	if (mark->call_start) {
		if (t->sums && thread->n_marks >= (thread->marks_max ? thread->marks_max : WAITING_MAX))
			err = resolve_waiting(t, pid, thread);
		return err ? err : array__push(thread->marks, thread->n_marks, *mark) ? 0 : -ENOMEM;
	}
	if (t->sums)
		err = count(t, 0, mark);
	if (t->sums && !err && !mark->is_release)
		err = resolve(t, pid, mark, 0, 0);
	return err;
}

static int add_release(struct torch *t, const struct torch_address *key, struct torch_thread *thread,
		       struct torch_mark *mark, u64 time)
{
	struct torch_block *block = map__find(&t->memory, key);
	struct torch_memory_sum *s = t->sums ? sum_of(t->sums, (u32)key->pid) : NULL;

	if (t->sums && !s)
		return -ENOMEM;
	if (!block) {
		if (s)
			s->unknown_releases++;
		return 0;
	}
	mark->is_release = true;
	mark->serial = t->n_blocks;
	mark->bytes = (s64)(0 - block->bytes);
	if (s) {
		s->releases++;
		release(t, (u32)key->pid, s, block, time);
	}
	map__remove(&t->memory, key);
	return add_mark(t, (u32)key->pid, thread, mark);
}

/*
 * Between two windows nothing was recorded: which of the blocks still exist is not known, so that all are taken for
 * freed.
 */
static int forget_blocks(struct torch *t, u64 time)
{
	int err = 0;

	for (u32 i = 0; !err && t->sums && i < t->memory.n; i++) {
		const struct torch_address *address = map__key(&t->memory, i);
		struct torch_memory_sum *s = sum_of(t->sums, (u32)address->pid);

		if (s)
			release(t, (u32)address->pid, s, map__value(&t->memory, i), time);
		err = s ? 0 : -ENOMEM;
	}
	if (t->sums && t->memory.n)
		t->sums->has_forgotten = true;
	map__free(&t->memory);
	return err;
}

static int enter_window(struct torch *t, u64 time)
{
	const struct trace_facts *f = t->q->facts;

	return f && trace_facts__enter_window(f, &t->window, time) ? forget_blocks(t, f->windows[t->window - 1].to) : 0;
}

bool torch_memory__is_release(const struct view *v)
{
	const struct schema_field *f = schema_event__field(v->event, "action");
	const char *action = f ? schema_field__value_name(f, view__s64(v, f)) : NULL;

	return action && !strcmp(action, "TORCH_FREED");
}

int torch_parts__add_memory(struct torch *t, const struct view *v)
{
	struct torch_address key = { (u64)view__get(v, "address"), (u64)view__get(v, "pid") };
	u32 pid = (u32)key.pid, tid = (u32)view__get(v, "tid");
	struct torch_thread *thread = torch__thread(t, pid, tid);
	struct torch_memory_sum *s = t->sums ? sum_of(t->sums, pid) : NULL;
	struct torch_mark mark = { .call_start = (u64)view__get(v, "call_start"), .address = key.address };
	u64 time = (u64)view__get(v, "time");
	struct torch_block *block;

	if (!thread || (t->sums && !s))
		return -ENOMEM;
	if (enter_window(t, time))
		return -ENOMEM;
	t->coverage.has_memory = true;
	if (torch_memory__is_release(v))
		return add_release(t, &key, thread, &mark, time);
	block = map__get(&t->memory, &key);
	if (!block)
		return -ENOMEM;
	/* the release of the block at this address was not recorded */
	if (s && block->serial)
		release(t, pid, s, block, time);
	*block = (struct torch_block){ (u64)view__get(v, "bytes"), time, ++t->n_blocks, NULL, tid };
	mark.bytes = (s64)block->bytes;
	mark.serial = block->serial;
	mark.peaks = s ? s->peaks : 0;
	if (s)
		allocate(t, s, block->bytes, time);
	return add_mark(t, pid, thread, &mark);
}

/* Events whose call was lost are those of the call around it, but for the bytes that the operator allocated itself. */
int torch_parts__take_memory(struct torch *t, struct torch_thread *thread, struct torch_span *c)
{
	u32 first = thread->n_marks;
	int err = 0;

	while (first && thread->marks[first - 1].call_start >= c->start) {
		struct torch_mark *mark = &thread->marks[--first];

		if (mark->call_start != c->start || mark->name)
			continue;
		c->self_bytes = (s64)((u64)c->self_bytes + (u64)mark->bytes);
		mark->name = c->name;
		mark->stack = c->stack;
		if (t->sums && !err)
			err = count(t, c->name, mark);
	}
	if (!t->sums) {
		thread->n_marks = first;
		return 0;
	}
	if (err || (allocates_only(torch__name(t, c->name)) && thread->n_marks - first <= WAITING_IN_CALL))
		return err;
	return resolve_from(t, c->pid, thread, first, c->name, c->stack);
}

static int on_call(const struct torch_span *c, const struct torch_span *parent, void *arg)
{
	return 0;
}

/* Ends what is open: allocations that wait for a call, time lines, and peaks of sites that did not change since. */
static int finish(struct torch_memory_sums *m)
{
	struct torch *t = m->torch;
	int err = 0;

	for (u32 i = 0; !err && i < t->threads.n; i++) {
		const struct torch_thread_key *key = map__key(&t->threads, i);
		struct torch_thread *thread = map__value(&t->threads, i);

		err = resolve_waiting(t, key->pid, thread);
		if (!err)
			err = resolve_from(t, key->pid, thread, 0, 0, 0);
	}
	MAP_EACH(struct torch_memory_sum *s, &m->sums)
		if (s->slots)
			write_slot(m, s, ~0ull, s->live);
	for (u32 i = 0; i < m->sites.n; i++) {
		const struct torch_memory_site_key *key = map__key(&m->sites, i);
		const struct torch_memory_sum *s = map__find(&m->sums, &key->pid);

		if (s)
			note_peak(map__value(&m->sites, i), s);
	}
	return err;
}

int torch_memory__new(struct torch_memory_sums **out, const struct query *q)
{
	struct torch_memory_sums *m = calloc(1, sizeof(*m));
	struct trace_window w;
	int err;

	*out = m;
	if (!m)
		return -ENOMEM;
	map__init(&m->sums, sizeof(u32), sizeof(struct torch_memory_sum));
	map__init(&m->sites, sizeof(struct torch_memory_site_key), sizeof(struct torch_memory_site));
	map__init(&m->operators, sizeof(u32), sizeof(struct torch_memory_operator));
	w = query__window(q);
	m->first = w.from;
	m->slot_ns = w.to > w.from ? (w.to - w.from) / TORCH_MEMORY_SLOTS + 1 : 1;
	err = torch__new(&m->torch, q);
	if (err)
		return err;
	m->torch->sums = m;
	err = torch__read(m->torch, on_call, NULL);
	return err ? err : finish(m);
}

void torch_memory__free(struct torch_memory_sums *m)
{
	if (!m)
		return;
	for (u32 i = 0; i < m->sums.n; i++)
		free(((struct torch_memory_sum *)map__value(&m->sums, i))->slots);
	MAPS_FREE(&m->sums, &m->sites, &m->operators);
	torch__free(m->torch);
	free(m);
}
