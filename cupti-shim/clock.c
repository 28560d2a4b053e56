// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "clock.h"

#include <stddef.h>
#include <string.h>

#define BLOCK_READS   16 /* reads that become one bound */
#define DRIFT_MAX     1000000LL /* parts in 10^9; beyond that, the device's clock was set and did not drift */
#define GOOD_ENOUGH   100 /* ns of error: no more reads are needed */
#define GOOD_FOR_MORE 250 /* after MORE reads */
#define GOOD_FOR_MOST 1000 /* after MOST */
#define READS_NS      30000000 /* time limit: with slow reads there are fewer of them */
#define MORE	      16
#define MOST	      64

/* The sample at index i, from the newest. */
static const struct clock_sample *sample(const struct clock *c, uint32_t i)
{
	return &c->list[(c->next + CLOCK_SAMPLES - 1 - i) % CLOCK_SAMPLES];
}

const struct clock_sample *clock__last(const struct clock *c)
{
	return c->n ? sample(c, 0) : NULL;
}

/* The result of reading both clocks. */
struct reading {
	const struct clock_source *source;
	uint64_t device; /* the first device time of the last block */
	double low, high; /* host time minus device time, relative to the base of the bounds */
	uint32_t reads;
	uint64_t start, end; /* host times */
};

static uint64_t error_of(const struct reading *r)
{
	return (uint64_t)((r->high - r->low) / 2) + 1;
}

static bool is_enough(const struct reading *r)
{
	uint64_t error = error_of(r);

	return error <= GOOD_ENOUGH || (r->reads >= MORE && error <= GOOD_FOR_MORE) ||
	       (r->reads >= MOST && error <= GOOD_FOR_MOST) || r->reads >= CLOCK_READS || r->end - r->start > READS_NS;
}

/*
 * Each read shows that at this device time the host time was between `before` and `after`. Converted to the block's
 * first device time, all of these bounds hold at once, and so do the earlier ones: the highest lower bound and the
 * lowest upper bound are closer than those of any read, because a read is seldom delayed on both sides. Returns 0,
 * -1: the clock can't be read; 1: the earlier bounds can't be true.
 */
static int read_block(struct reading *r, const struct clock_bounds *known)
{
	uint64_t before, after, device;
	double least, most, passed;
	int64_t lower, upper;
	uint32_t i;

	bounds__rate(known, &least, &most);
	r->device = 0;
	r->low = -1e18;
	r->high = 1e18;
	for (i = 0; i < BLOCK_READS && (!i || !is_enough(r)); i++) {
		before = r->source->host(r->source->arg);
		device = r->source->device(r->source->arg);
		after = r->source->host(r->source->arg);
		r->start = r->start ? r->start : before;
		r->end = after;
		if (!device)
			return -1;
		if (!i) {
			r->device = device;
			if (!bounds__at(known, device, &r->low, &r->high))
				return 1;
		}
		/* the device's clock stood still, or went back */
		passed = device > r->device ? device - r->device : 0;
		/* each time may be 1 ns later than its value */
		lower = before - device - known->base - 1;
		upper = after - device - known->base + 1;
		if (lower - passed * most > r->low)
			r->low = lower - passed * most;
		if (upper - passed * least < r->high)
			r->high = upper - passed * least;
		r->reads++;
		if (r->low > r->high)
			return 1;
	}
	return 0;
}

/* Returns -1 if the clock can't be read. Sets *anew if the earlier bounds are no longer true. */
static int read_clock(struct clock *c, struct reading *r, bool *anew)
{
	int err, failures = 0;

	do {
		if (!c->bounds.n)
			c->bounds.base = (int64_t)(r->source->host(r->source->arg) - r->source->device(r->source->arg));
		err = read_block(r, &c->bounds);
		if (err < 0)
			return -1;
		if (err) {
			/* a clock that contradicts itself repeatedly is unusable */
			if (failures++ > 8)
				return -1;
			*anew = c->bounds.n;
			c->bounds.n = 0;
			continue;
		}
		bounds__add(&c->bounds, r->device, r->low, r->high);
	} while (err || !is_enough(r));
	return 0;
}

static int64_t drift_of(const struct clock_bounds *b)
{
	double least, most;

	bounds__rate(b, &least, &most);
	/* the host's clock falls behind that of a fast device */
	return -(least + most) / 2 * 1e9;
}

/* Did the device's clock jump since then? Over a short time the errors of both samples look like drift. */
static bool has_jumped(const struct clock_sample *before, const struct clock_sample *s)
{
	int64_t host = s->host - before->host, drift, slack;

	if (host <= 0)
		return true;
	drift = (double)((int64_t)(s->device - before->device) - host) / host * 1e9;
	slack = (double)(s->error + before->error) / host * 1e9;
	return drift > DRIFT_MAX + slack || drift < -DRIFT_MAX - slack;
}

bool clock__sample(struct clock *c, const struct clock_source *source)
{
	const struct clock_sample *last = clock__last(c), *before;
	struct reading r = { .source = source };
	struct clock_sample s = { .drift = 0 };
	bool anew = false;

	if (read_clock(c, &r, &anew))
		return false;
	s.device = r.device;
	s.host = r.device + c->bounds.base + (int64_t)((r.low + r.high) / 2);
	s.error = error_of(&r);
	s.reads = r.reads;
	/* a sample that came soon after the last permanent one is replaced */
	if (c->n > 1 && last->host < c->last_permanent + CLOCK_EVERY) {
		c->next = (c->next + CLOCK_SAMPLES - 1) % CLOCK_SAMPLES;
		c->n--;
	} else if (last) {
		c->last_permanent = last->host;
	}
	before = clock__last(c);
	if (before && has_jumped(before, &s)) {
		s.restarted = true;
		c->n = 0;
		c->last_permanent = s.host;
	}
	s.drift = before && !s.restarted ? drift_of(&c->bounds) : 0;
	c->list[c->next] = s;
	c->next = (c->next + 1) % CLOCK_SAMPLES;
	if (c->n < CLOCK_SAMPLES)
		c->n++;
	return true;
}

/* Interpolates on the line through two samples. */
static uint64_t on_line(const struct clock_sample *a, const struct clock_sample *b, uint64_t device)
{
	int64_t width = b->device - a->device, from = device - a->device;

	if (width <= 0)
		return a->host + from;
	return a->host + from + (int64_t)((double)from * ((double)(int64_t)(b->host - a->host) - width) / width);
}

uint64_t clock__host(const struct clock *c, uint64_t device)
{
	uint32_t i;

	if (!device || !c->n)
		return 0;
	if (c->n == 1)
		return sample(c, 0)->host + (device - sample(c, 0)->device);
	/* the newest pair whose older sample is before the time; a time before all samples uses the oldest pair */
	for (i = 1; i + 1 < c->n && sample(c, i)->device > device; i++)
		;
	return on_line(sample(c, i), sample(c, i - 1), device);
}
