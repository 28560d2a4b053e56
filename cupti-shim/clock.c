// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "clock.h"

#include <stddef.h>
#include <string.h>

#define GOOD_ENOUGH 100 /* ns of error: no more reads are needed */
#define ANY_DRIFT   100e-6 /* what two clocks may differ by */
#define KNOWN_DRIFT 5e-6 /* and from what they differed by before */
#define DRIFT_MAX   1000000LL /* parts in 10^9: beyond, the device's clock was set and did not drift */

/* i-th youngest */
static const struct clock_sample *sample(const struct clock *c, uint32_t i)
{
	return &c->list[(c->next + CLOCK_SAMPLES - 1 - i) % CLOCK_SAMPLES];
}

const struct clock_sample *clock__last(const struct clock *c)
{
	return c->n ? sample(c, 0) : NULL;
}

/*
 * Each read says: at this device time it was no earlier than `before` and no later
 * than `after`. Brought to the first read's device time, all of them hold at once:
 * the latest of the one and the earliest of the other are closer than any bracket,
 * as a read is seldom held up on both sides. Over the reads the drift counts, and
 * what is not known of it is added to the error.
 */
static bool read_narrowest(struct clock_sample *s, const struct clock_source *source, double drift, double unsure)
{
	uint64_t first = 0, device = 0, before, after;
	int64_t low = INT64_MIN, high = INT64_MAX, passed = 0;

	s->error = ~0ULL;
	for (s->reads = 0; s->reads < CLOCK_READS && s->error > GOOD_ENOUGH; s->reads++) {
		before = source->host(source->arg);
		device = source->device(source->arg);
		after = source->host(source->arg);
		if (!device)
			return false;
		first = first ? first : device;
		passed = device - first;
		passed -= (int64_t)(passed * drift);
		if ((int64_t)before - passed > low)
			low = before - passed;
		if ((int64_t)after - passed < high)
			high = after - passed;
		/* the drift is another than was thought: this read alone */
		if (low > high) {
			first = device;
			low = before;
			high = after;
		}
		s->error = (high - low + 1) / 2 + (uint64_t)((device - first) * unsure);
	}
	s->host = low + (high - low) / 2;
	s->device = first;
	return true;
}

static int64_t drift_between(const struct clock_sample *a, const struct clock_sample *b)
{
	int64_t host = b->host - a->host, device = b->device - a->device;

	return host > 0 ? (int64_t)((double)(device - host) / host * 1e9) : 0;
}

bool clock__sample(struct clock *c, const struct clock_source *source)
{
	const struct clock_sample *last = clock__last(c), *before;
	struct clock_sample s = { .drift = 0 };
	int64_t slack;

	if (!read_narrowest(&s, source, last ? last->drift / 1e9 : 0, last && last->drift ? KNOWN_DRIFT : ANY_DRIFT))
		return false;
	/* a sample that came soon after the last that is to stay gives way */
	if (c->n > 1 && last->host < c->kept + CLOCK_EVERY) {
		c->next = (c->next + CLOCK_SAMPLES - 1) % CLOCK_SAMPLES;
		c->n--;
	} else if (last) {
		c->kept = last->host;
	}
	before = clock__last(c);
	if (before) {
		s.drift = drift_between(before, &s);
		/* over a short time the errors of both look like drift */
		slack = s.host > before->host ? (double)(s.error + before->error) / (s.host - before->host) * 1e9 : 0;
		if (s.host <= before->host || s.drift > DRIFT_MAX + slack || s.drift < -DRIFT_MAX - slack) {
			s.restarted = true;
			s.drift = 0;
			c->n = 0;
			c->kept = s.host;
		}
	}
	c->list[c->next] = s;
	c->next = (c->next + 1) % CLOCK_SAMPLES;
	if (c->n < CLOCK_SAMPLES)
		c->n++;
	return true;
}

/* On the line through two samples. */
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
	/* the youngest pair whose older one lies before it; what is older than all goes by the oldest pair */
	for (i = 1; i + 1 < c->n && sample(c, i)->device > device; i++)
		;
	return on_line(sample(c, i), sample(c, i - 1), device);
}
