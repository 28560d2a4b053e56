// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Open ranges: pushed ones in a stack of their thread, for all domains together, and started ones, which any thread may
 * end, in a table. A range is recorded when it ends.
 */
#define _GNU_SOURCE
#include "nvtx.h"

#include "shim.h"

#include <string.h>
#include <sys/mman.h>

#define DEPTH_MAX   200 /* pushed ranges of a thread */
#define STARTED_MAX 16384
#define TRIES	    64

struct open_range {
	struct shim_nvtx_attributes attributes;
	uint64_t start; /* 0: before the recording */
	uint32_t level;
};

struct stack {
	uint32_t version; /* odd: the thread is changing it */
	uint32_t era; /* of the ranges: older ones are not there any more */
	uint32_t depth;
	uint32_t over; /* pushed when it was full */
	struct open_range ranges[DEPTH_MAX];
};

struct started {
	uint32_t state; /* enum slot_state */
	uint32_t sequence; /* part of its id */
	uint32_t tid;
	struct open_range range;
};
enum slot_state { SLOT_FREE, SLOT_TAKEN, SLOT_OPEN };

static struct {
	struct started *started; /* NULL: none yet */
	uint32_t hint; /* where a free one may be */
	uint32_t era;
	uint64_t unknown, too_many;
} ranges;

static void count(uint64_t *n)
{
	if (nvtx_records)
		__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
}

static uint64_t now_if_recording(void)
{
	return nvtx_records ? shim__now() : 0;
}

/*
 * Only a probe of `record --capture-range` is there: the begin and the end of each range are passed at once, and what
 * was recorded before is handed over first.
 */
SHIM_EXPORT void sonde_cupti_range(uint64_t what, const char *name, const char *domain, uint64_t id);
__asm__(".text\n.globl sonde_cupti_range\n.type sonde_cupti_range, @function\n.p2align 4\nsonde_cupti_range:\n"
	"	nop\n	ret\n.size sonde_cupti_range, . - sonde_cupti_range\n");
enum { RANGE_BEGINS = 1, RANGE_ENDS };

static void pass_range(uint64_t what, const struct shim_nvtx_attributes *a, uint64_t id)
{
	if (!__atomic_load_n(&nvtx_passes_ranges, __ATOMIC_RELAXED))
		return;
	lanes__flush(LANE_NVTX);
	sonde_cupti_range(what, text__of(a->name), text__of(a->domain), id);
}

static struct stack *own_stack(void)
{
	struct lane_thread *t = lane__thread();
	struct stack *s = t ? lane_thread__room(t, sizeof(*s), LANE_NVTX) : NULL;

	if (s && s->era != ranges.era)
		*s = (struct stack){ .era = ranges.era, .version = s->version };
	return s;
}

static void record(const struct open_range *r, enum nvtx_range_kind kind, uint32_t tid, uint64_t end)
{
	struct shim_nvtx_range *body;
	uint32_t own_tid;
	bool before = !r->start;

	if (!nvtx_records && end)
		return;
	nvtx__use(r->attributes.name);
	nvtx__use(r->attributes.domain);
	body = lane__record(LANE_NVTX, NVTX_RANGE | (before ? SHIM_STARTED_BEFORE : 0), sizeof(*body),
			    before ? nvtx__since() : r->start, end);
	if (!body)
		return;
	own_tid = ((struct shim_record *)body - 1)->tid;
	*body = (struct shim_nvtx_range){
		.attributes = r->attributes, .kind = kind, .level = r->level, .end_ns_tid = end ? own_tid : 0
	};
	if (tid)
		((struct shim_record *)body - 1)->tid = tid;
	lane__commit(LANE_NVTX);
}

static void change(struct stack *s, uint32_t by)
{
	__atomic_store_n(&s->version, s->version + by, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* The index of the innermost range of a domain; -1: there is none. */
static int innermost(const struct stack *s, uint64_t domain)
{
	int i = (int)s->depth - 1;

	while (i >= 0 && s->ranges[i].attributes.domain != domain)
		i--;
	return i;
}

uint64_t nvtx__push(const struct shim_nvtx_attributes *a, int *level)
{
	struct stack *s = own_stack();
	struct open_range *r;
	int around;

	*level = 0;
	if (!s || s->depth == DEPTH_MAX) {
		count(&ranges.too_many);
		if (s)
			s->over++;
		return 0;
	}
	around = innermost(s, a->domain);
	*level = around < 0 ? 0 : (int)s->ranges[around].level + 1;
	pass_range(RANGE_BEGINS, a, 0);
	r = &s->ranges[s->depth];
	change(s, 1);
	*r = (struct open_range){ .attributes = *a, .start = now_if_recording(), .level = (uint32_t)*level };
	s->depth++;
	change(s, 1);
	return r->start;
}

int nvtx__pop(uint64_t domain)
{
	uint64_t end = now_if_recording();
	struct stack *s = own_stack();
	struct open_range r;
	int i;

	if (!s)
		return 0;
	if (s->over) {
		s->over--;
		return 0;
	}
	i = innermost(s, domain);
	if (i < 0) {
		count(&ranges.unknown);
		return -1;
	}
	r = s->ranges[i];
	change(s, 1);
	s->depth--;
	memmove(&s->ranges[i], &s->ranges[i + 1], (s->depth - (uint32_t)i) * sizeof(r));
	change(s, 1);
	if (end)
		record(&r, NVTX_PUSHED, 0, end);
	pass_range(RANGE_ENDS, &r.attributes, 0);
	return (int)r.level;
}

static bool make_table(void)
{
	struct started *none = NULL, *table;

	if (__atomic_load_n(&ranges.started, __ATOMIC_ACQUIRE))
		return true;
	table = mmap(NULL, STARTED_MAX * sizeof(*table), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (table == MAP_FAILED)
		return false;
	if (!__atomic_compare_exchange_n(&ranges.started, &none, table, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		munmap(table, STARTED_MAX * sizeof(*table));
	return true;
}

static struct started *take_slot(uint32_t *index)
{
	for (int i = 0; make_table() && i < TRIES; i++) {
		uint32_t at = __atomic_fetch_add(&ranges.hint, 1, __ATOMIC_RELAXED) % STARTED_MAX, is_free = SLOT_FREE;
		struct started *slot = &ranges.started[at];

		if (!__atomic_compare_exchange_n(&slot->state, &is_free, SLOT_TAKEN, false, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		*index = at;
		return slot;
	}
	return NULL;
}

uint64_t nvtx__start(const struct shim_nvtx_attributes *a, uint64_t *start)
{
	struct lane_thread *t = lane__thread();
	uint32_t index;
	struct started *slot = t ? take_slot(&index) : NULL;
	uint64_t id;

	*start = 0;
	if (!slot) {
		count(&ranges.too_many);
		return 0;
	}
	slot->sequence++;
	id = (uint64_t)slot->sequence << 32 | (index + 1);
	pass_range(RANGE_BEGINS, a, id);
	slot->tid = lane_thread__tid(t);
	*start = now_if_recording();
	slot->range = (struct open_range){ .attributes = *a, .start = *start };
	__atomic_store_n(&slot->state, SLOT_OPEN, __ATOMIC_RELEASE);
	return id;
}

void nvtx__end(uint64_t id)
{
	uint32_t index = (uint32_t)id - 1, open = SLOT_OPEN;
	uint64_t end = now_if_recording();
	struct started *slot, copy;

	if (!ranges.started || index >= STARTED_MAX)
		goto unknown;
	slot = &ranges.started[index];
	if (slot->sequence != id >> 32 ||
	    !__atomic_compare_exchange_n(&slot->state, &open, SLOT_TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		goto unknown;
	copy = *slot;
	__atomic_store_n(&slot->state, SLOT_FREE, __ATOMIC_RELEASE);
	if (end)
		record(&copy.range, NVTX_STARTED, copy.tid, end);
	pass_range(RANGE_ENDS, &copy.range.attributes, id);
	return;
unknown:
	count(&ranges.unknown);
}

/* The thread may be changing its stack: then this one waits a moment, and leaves it out in the end. */
static bool copy_stack(const struct stack *s, struct stack *to)
{
	for (int i = 0; i < TRIES; i++) {
		uint32_t version = __atomic_load_n(&s->version, __ATOMIC_ACQUIRE);

		if (version & 1)
			continue;
		*to = *s;
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (__atomic_load_n(&s->version, __ATOMIC_ACQUIRE) == version && to->depth <= DEPTH_MAX)
			return true;
	}
	return false;
}

static void report_stack(struct lane_thread *t, void *room, void *arg)
{
	static struct stack copy; /* only the shim's thread uses it */

	if (!copy_stack(room, &copy) || copy.era != ranges.era)
		return;
	for (uint32_t i = 0; i < copy.depth; i++)
		record(&copy.ranges[i], NVTX_PUSHED, lane_thread__tid(t), 0);
}

void nvtx_ranges__report_open(void)
{
	lanes__each(LANE_NVTX, report_stack, NULL);
	for (uint32_t i = 0; ranges.started && i < STARTED_MAX; i++)
		if (__atomic_load_n(&ranges.started[i].state, __ATOMIC_ACQUIRE) == SLOT_OPEN)
			record(&ranges.started[i].range, NVTX_STARTED, ranges.started[i].tid, 0);
}

void nvtx_ranges__forget(void)
{
	__atomic_fetch_add(&ranges.era, 1, __ATOMIC_RELEASE);
	for (uint32_t i = 0; ranges.started && i < STARTED_MAX; i++) {
		uint32_t open = SLOT_OPEN;

		__atomic_compare_exchange_n(&ranges.started[i].state, &open, SLOT_FREE, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
	}
}

void nvtx_ranges__lost(uint64_t *unknown, uint64_t *too_many)
{
	*unknown = __atomic_exchange_n(&ranges.unknown, 0, __ATOMIC_RELAXED);
	*too_many = __atomic_exchange_n(&ranges.too_many, 0, __ATOMIC_RELAXED);
}
