// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Matches the collective operations of ranks, and compares when the ranks arrived. */
#include "model/collectives.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/text.h"
#include "util/compare.h"
#include "util/map.h"
#include "util/search.h"

/* By how many operations the beginnings of two recordings may be off, beyond what their times show */
#define SHIFT_MAX 8
/* So many operations are compared to find this out, and the difference of two machines' clocks */
#define COMPARED_MAX 256
/* Ranks that are late by less than this, ns, or than twice the longest time between two operations, may still come */
#define STUCK_MIN 1000000000ull

static bool is_same_call(const struct collective *a, const struct collective *b)
{
	return !a->function || !b->function || (a->bytes == b->bytes && !strcmp(a->function, b->function));
}

/* Returns the operation of r that ended nearest to this time. */
static u32 nearest(const struct collective_rank *r, u64 end)
{
	u32 at = (u32)SEARCH(r->n, i, r->list[i].end < end);

	if (at == r->n || (at && end - r->list[at - 1].end < r->list[at].end - end))
		at--;
	return at;
}

/* How well the operations of two ranks agree if that with index i of r has index i + shift of first */
struct agreement {
	u32 compared, different;
	double distance; /* ns, mean of the times between their ends */
};

static struct agreement agreement_of(const struct collective_rank *first, const struct collective_rank *r, s64 shift)
{
	struct agreement a = { 0 };

	for (u32 i = 0; i < r->n && a.compared < COMPARED_MAX; i++) {
		s64 at = i + shift;

		if (at < 0 || at >= first->n)
			continue;
		a.compared++;
		a.different += !is_same_call(&first->list[at], &r->list[i]);
		a.distance += llabs((s64)(first->list[at].end - r->list[i].end));
	}
	a.distance /= a.compared ? a.compared : 1;
	return a;
}

static bool is_better(struct agreement a, struct agreement b)
{
	u64 x = (u64)a.different * (b.compared + 1), y = (u64)b.different * (a.compared + 1);

	return x != y ? x < y : a.distance < b.distance;
}

/* Returns by how much the index of an operation of r is lower than that of the same operation of first. */
static s64 find_shift(const struct collective_rank *first, const struct collective_rank *r)
{
	struct agreement best, a;
	s64 middle, found;

	if (first->is_new && r->is_new)
		return 0;
	middle = (s64)nearest(first, r->list[r->n / 2].end) - r->n / 2;
	found = middle;
	best = agreement_of(first, r, found);
	for (s64 shift = middle - SHIFT_MAX; shift <= middle + SHIFT_MAX; shift++) {
		a = agreement_of(first, r, shift);
		if (!a.compared || !is_better(a, best))
			continue;
		best = a;
		found = shift;
	}
	return found;
}

static int by_value(const void *a, const void *b)
{
	s64 x = *(const s64 *)a, y = *(const s64 *)b;

	return x < y ? -1 : x > y;
}

/* Sets the difference of the clocks of two machines: devices end an operation at the same time. */
static void set_clock(const struct collective_rank *first, struct collective_rank *r, s64 shift)
{
	s64 differences[COMPARED_MAX];
	u32 n = 0;

	for (u32 i = 0; i < r->n && n < COMPARED_MAX; i++) {
		s64 at = i + shift;

		if (at >= 0 && at < first->n && first->list[at].has_device && r->list[i].has_device)
			differences[n++] = (s64)(first->list[at].end - r->list[i].end);
	}
	if (!n)
		return;
	qsort(differences, n, sizeof(*differences), by_value);
	r->clock = differences[n / 2];
}

static bool overlap(const struct collective *a, const struct collective *b)
{
	return a->start <= b->end && b->start <= a->end;
}

/* Numbers the operations of a rank from whose records some may be missing, as those of the first rank. */
static void follow(const struct collective_rank *first, struct collective_rank *r)
{
	u32 expected = r->n ? nearest(first, r->list[0].end) : 0, at;

	for (u32 i = 0; i < r->n; i++) {
		struct collective *one = &r->list[i];

		if (expected < first->n && !overlap(&first->list[expected], one)) {
			at = nearest(first, one->end);
			if (at > expected && overlap(&first->list[at], one))
				expected = at;
			else if (one->end < first->list[expected].start)
				continue;
		}
		one->number = expected < first->n ? (s64)expected : -1;
		expected += expected < first->n;
	}
}

/* Numbers all operations. The numbers are those of the rank with most of them. */
static void number(struct collective_rank *ranks, u32 n, const struct names *names)
{
	const struct collective_rank *first = ranks;
	s64 least = 0, shift;

	for (u32 k = 1; k < n; k++)
		first = ranks[k].n > first->n ? &ranks[k] : first;
	for (struct collective_rank *r = ranks; r < ranks + n; r++) {
		for (u32 i = 0; i < r->n; i++)
			r->list[i].number = r == first ? (s64)i : -1;
		if (r == first || !r->n)
			continue;
		if (!r->is_nccl) {
			follow(first, r);
			continue;
		}
		shift = find_shift(first, r);
		least = shift < least ? shift : least;
		for (u32 i = 0; i < r->n; i++)
			r->list[i].number = i + shift;
		if (names__machine(names, r->pid) != names__machine(names, first->pid))
			set_clock(first, r, shift);
	}
	for (u32 k = 0; least && k < n; k++)
		for (u32 i = 0; i < ranks[k].n; i++)
			ranks[k].list[i].number -= least;
}

static u64 arrival(const struct communicator *c, const struct collective_rank *r, const struct collective *one)
{
	return (c->has_device ? one->start : one->call) + (u64)r->clock;
}

/* Adds the part of a wait, up to `to`, that is not counted yet. Returns it. */
static u64 count(u64 from, u64 to, u64 *counted_to)
{
	from = from > *counted_to ? from : *counted_to;
	if (to <= from)
		return 0;
	*counted_to = to;
	return to - from;
}

/* A rank in an operation */
struct attendance {
	s64 number;
	u64 arrival;
	struct collective_rank *rank;
	const struct collective *one;
};

COMPARE_BY(by_arrival, struct attendance, ASCENDING(number), ASCENDING(arrival))

/* Compares the n ranks, two or more, of one operation. */
static void compare(struct communicator *c, const struct attendance *list, u32 n)
{
	const struct attendance *last = &list[n - 1];
	u64 second = list[n - 2].arrival, delay;

	c->compared++;
	c->skew_ns += last->arrival - list->arrival;
	if (last->arrival > second) {
		delay = count(second, last->arrival, &last->rank->delayed_to);
		last->rank->last++;
		last->rank->delayed_ns += delay;
		last->rank->delayed_squares += (double)delay * (double)delay;
		if (c->compared > 1 && delay > last->rank->longest_ns) {
			last->rank->longest_ns = delay;
			last->rank->longest_at = last->number;
		}
	}
	for (u32 i = 0; i < n; i++) {
		list[i].rank->compared++;
		list[i].rank->waited_ns += count(list[i].arrival, last->arrival, &list[i].rank->counted_to);
	}
}

static void meet(struct communicator *c, const struct attendance *list, u32 n)
{
	bool is_open = false, is_different = false;

	for (u32 i = 0; i < n; i++) {
		is_open |= list[i].one->is_open;
		is_different |= !is_same_call(list->one, list[i].one);
	}
	/* with no equal call before it, the ranks' records may only begin at different operations */
	if (is_different && c->mismatch < 0 && (c->compared || c->ranks->is_new))
		c->mismatch = list->number;
	if (n > 1 && !is_open && !is_different)
		compare(c, list, n);
}

/* Compares all operations. 0 or -ENOMEM. */
static int meet_all(struct communicator *c)
{
	struct attendance *list;
	size_t all = 0, n = 0, run;

	for (const struct collective_rank *r = c->ranks; r < c->ranks + c->n; r++)
		all += r->n;
	list = calloc(all + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (struct collective_rank *r = c->ranks; r < c->ranks + c->n; r++)
		for (const struct collective *one = r->list; one < r->list + r->n; one++)
			if (one->number >= 0)
				list[n++] = (struct attendance){ one->number, arrival(c, r, one), r, one };
	qsort(list, n, sizeof(*list), by_arrival);
	for (size_t i = 0; i < n; i += run) {
		for (run = 1; i + run < n && list[i + run].number == list[i].number;)
			run++;
		meet(c, &list[i], (u32)run);
	}
	free(list);
	return 0;
}

/* Were kernels recorded of each rank that has ended an operation? */
static bool all_have_devices(const struct communicator *c)
{
	bool has_any = false;

	for (const struct collective_rank *r = c->ranks; r < c->ranks + c->n; r++) {
		bool has_device = false, has_ended = false;

		for (u32 i = 0; i < r->n; i++) {
			has_device |= r->list[i].has_device;
			has_ended |= !r->list[i].is_open;
		}
		if (has_ended && !has_device)
			return false;
		has_any |= has_device;
	}
	return has_any;
}

static s64 last_number(const struct collective_rank *r)
{
	for (u32 i = r->n; i; i--)
		if (r->list[i - 1].number >= 0)
			return r->list[i - 1].number;
	return -1;
}

/* Returns the first operation that had not ended; -1: none. */
static s64 stuck_of(const struct communicator *c)
{
	s64 first_open = -1, fewest = last_number(c->ranks), most = fewest;

	for (const struct collective_rank *r = c->ranks; r < c->ranks + c->n; r++) {
		s64 last = last_number(r);

		for (u32 i = 0; i < r->n; i++) {
			s64 at = r->list[i].number;

			if (at >= 0 && r->list[i].is_open && (first_open < 0 || at < first_open))
				first_open = at;
		}
		fewest = last < fewest ? last : fewest;
		most = last > most ? last : most;
	}
	/* calls return before the device has executed them, so they show what is missing, not what has not ended */
	if (first_open < 0 && c->ranks->is_nccl && !c->has_device && fewest < most)
		return fewest + 1;
	return first_open;
}

static u64 longest_interval(const struct communicator *c)
{
	u64 longest = 0;

	for (const struct collective_rank *r = c->ranks; r < c->ranks + c->n; r++)
		for (u32 i = 1; i < r->n; i++)
			if (r->list[i].call - r->list[i - 1].call > longest && !r->list[i].is_open)
				longest = r->list[i].call - r->list[i - 1].call;
	return longest;
}

/* Finds out whether the ranks wait for one that has not come. */
static void find_absent(struct communicator *c, u64 end)
{
	s64 stuck = stuck_of(c);
	u64 latest = 0;

	for (struct collective_rank *r = c->ranks; stuck >= 0 && r < c->ranks + c->n; r++) {
		const struct collective *one = collective_rank__operation(r, stuck);

		c->absent += collective_rank__is_absent(r, stuck);
		/* its kernel has not ended, so when it started is not known */
		if (one && one->call + (u64)r->clock > latest)
			latest = one->call + (u64)r->clock;
	}
	c->stuck_ns = latest && end > latest ? end - latest : 0;
	/* what all ranks have come to ends without another rank */
	if ((c->absent || c->ranks->size > (s32)c->n) && c->stuck_ns >= STUCK_MIN &&
	    c->stuck_ns / 2 >= longest_interval(c))
		c->stuck = stuck;
}

int communicator__compare(struct communicator *c, struct collective_rank *ranks, u32 n, const struct names *names,
			  u64 end)
{
	int err;

	*c = (struct communicator){ .ranks = ranks, .n = n, .stuck = -1, .mismatch = -1 };
	number(ranks, n, names);
	c->has_device = all_have_devices(c);
	err = meet_all(c);
	find_absent(c, end);
	return err;
}

const struct collective *collective_rank__operation(const struct collective_rank *r, s64 number)
{
	for (u32 i = r->n; i; i--)
		if (r->list[i - 1].number == number)
			return &r->list[i - 1];
	return NULL;
}

void communicator__name_operation(const struct communicator *c, s64 number, char *buf, size_t size)
{
	struct text_buffer text = { .buf = buf, .size = size };
	const struct collective *one = NULL;

	for (u32 i = 0; i < c->n && !one; i++)
		one = collective_rank__operation(&c->ranks[i], number);
	text__add(&text, "collective %lld", (long long)number + 1);
	if (one && one->function)
		text__add(&text, " (%s, %s)", one->function, TEXT_BYTES(one->bytes));
}

bool collective_rank__is_absent(const struct collective_rank *r, s64 number)
{
	return last_number(r) < number;
}

/* What determines how long a kernel takes */
struct kind {
	const char *function;
	u64 bytes;
};

u64 collective_rank__excess(const struct collective_rank *r)
{
	struct map fastest; /* struct kind -> u64 ns */
	u64 excess = 0;

	map__init(&fastest, sizeof(struct kind), sizeof(u64));
	for (u32 pass = 0; pass < 2; pass++) {
		for (const struct collective *one = r->list; one < r->list + r->n; one++) {
			struct kind kind = { one->function, one->bytes };
			u64 ns = one->end - one->start, *least = one->has_device ? map__get(&fastest, &kind) : NULL;

			if (!least)
				continue;
			if (!pass)
				*least = !*least || ns < *least ? ns : *least;
			else if (ns >= 2 * *least)
				excess += ns - *least;
		}
	}
	map__free(&fastest);
	return excess;
}
