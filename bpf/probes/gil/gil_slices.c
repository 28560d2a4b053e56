// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Measuring in slices of time. A probe costs about 2 us with its trap. A thread that waits for the GIL 100,000 times a
 * second is slowed by that, and the timing of the others changes. So above a number of waits per second the probes are
 * detached, and attached again for a slice now and then. They are also detached between the slices of --cost-limit
 * (user/record/attach/slices.c), which then decides alone. Before Linux 6.6 they stay attached there, and the
 * programs return at once: to detach them would stop the worker for 30 to 50 ms per site in each pause. The trace says
 * which times were measured (gil_slice). docs/gil.md has the measurements.
 */
#include <bpf/bpf.h>
#include <unistd.h>

#include "gil.h"
#include "attach/steering.h"
#include "gil_slices.h"

/*
 * Records per second above which slices begin; they end below a quarter of this. A hold costs less than a wait, and
 * is recorded only with --gil=full.
 */
#define WAITS_MAX 5000
#define HOLDS_MAX 20000
#define SECOND	  1000000000ULL
#define DELAY_US  100000

/* This map controls when the programs record, not what. */
STEERING(controls) = {
	.map = "gil_controls",
	.key_size = sizeof(u32),
	.value_size = sizeof(struct gil_control),
};

static void set_control(struct session *s, const struct gil_slices *g, u64 paused)
{
	struct gil_control control = { .slice = g->number, .watched = g->watched, .paused = paused };
	u32 zero = 0;

	/* for a test: the worker or the attacher may have to wait for a CPU */
	if (session__test_switch("slow-gil-slices"))
		usleep(DELAY_US);
	session__map_set(s, "gil_controls", &zero, &control, BPF_ANY);
	if (session__test_switch("slow-gil-slices"))
		usleep(DELAY_US);
}

void gil_slices__watched(struct gil_slices *g, struct session *s, bool watched)
{
	g->watched = watched;
	set_control(s, g, g->paused);
}

void gil_slices__count(struct gil_slices *g, const struct event *e)
{
	g->waits += e->id == ID_gil_wait;
	g->holds += e->id == ID_gil_hold;
}

/* A wait or hold that began before the pause ends with its slice. */
static void cut_end(struct event *e, u32 size, u64 end)
{
	struct gil_wait *w = (struct gil_wait *)e;

	e->time = end;
	e->flags |= EVENT_OPEN;
	if (e->id != ID_gil_wait || size < sizeof(*w))
		return;
	/* what is known only at the end of a wait: an open wait has none of it */
	w->last_holder = w->drop_time = 0;
	w->result = 0;
	w->dropper = w->holder = w->locked = w->holder_stack = 0;
}

static bool cut(struct event *e, u32 size, u64 from, u64 to)
{
	struct span *span = (struct span *)e;

	if (!from || e->time <= from || size < sizeof(*span))
		return true;
	if (e->id == ID_gil_drop)
		return e->time >= to;
	if (span->start >= to)
		return true;
	if (span->start < from) {
		cut_end(e, size, from);
		return true;
	}
	/* of a hold that ends in the slice after the pause, the end and the thread are known */
	if (e->id != ID_gil_hold || e->time < to)
		return false;
	span->start = e->time;
	e->flags |= EVENT_NO_DURATION;
	return true;
}

bool gil_slices__cut(const struct gil_slices *g, struct event *e, u32 size)
{
	return cut(e, size, g->last_pause, g->last_pause_end) && (!g->paused || cut(e, size, g->paused, ~0ULL));
}

bool gil_slices__is_idle(const struct gil_slices *g)
{
	return g->waits == g->waits_at_start && g->holds == g->holds_at_start;
}

/* Records from here on count for the next slice. */
static void start_counts(struct gil_slices *g)
{
	g->waits_at_start = g->waits;
	g->holds_at_start = g->holds;
}

/* Records per second since the last call, as a share of the maximum. */
static double load(struct gil_slices *g, u64 now)
{
	double seconds = (double)(now - g->counted) / SECOND, waits = g->waits - g->waits_before,
	       holds = g->holds - g->holds_before;

	g->counted = now;
	g->waits_before = g->waits;
	g->holds_before = g->holds;
	if (session__test_switch("no-gil-slices"))
		return 0;
	/* for a test: a busy machine does not reach thousands of waits */
	if (session__test_switch("early-gil-slices"))
		seconds /= 100;
	return seconds > 0 ? (waits / WAITS_MAX + holds / HOLDS_MAX) / seconds : 0;
}

static void record(struct gil_slices *g, struct session *s, u64 end)
{
	struct gil_slice e = {
		.span = { .event = { .time = end, .id = ID_gil_slice }, .start = g->began },
		.seen = g->waits - g->waits_at_start,
		.pause = g->pause,
	};

	session__emit(s, &e, sizeof(e));
	start_counts(g);
}

static void pause_all(struct gil_slices *g, struct session *s, u64 now)
{
	g->paused = session__now(s);
	/* the programs first, which stop all at once; they write what is open */
	set_control(s, g, g->paused);
	g->is_detached = !session__test_switch("attached-gil-slices") && !(g->limited && session__detaches_slowly(s));
	if (g->is_detached)
		session__detach_family(s, "gil");
	session__run_iter(s, "gil_open_waits", 0);
	if (g->slicing || g->limited)
		record(g, s, g->paused);
	g->slicing = true;
	g->next = now + GIL_PAUSE;
}

static void resume(struct gil_slices *g, struct session *s, u64 now)
{
	if (g->is_detached)
		session__attach_family(s, "gil");
	g->number++;
	start_counts(g);
	set_control(s, g, 0);
	/* the programs record all from here on; gil_slices__cut removes what began before */
	g->began = session__now(s);
	g->pause = g->began - g->paused;
	g->last_pause = g->paused;
	g->last_pause_end = g->began;
	g->paused = 0;
	/* records drained from here on count for the slice */
	load(g, now);
	g->next = now + GIL_SLICE;
}

void gil_slices__set(struct gil_slices *g, struct session *s, bool measures, bool is_idle)
{
	u64 now = session__now(s);

	if (measures) {
		if (g->paused)
			resume(g, s, now);
		return;
	}
	g->limited = g->paused || !is_idle;
	if (g->limited && !g->paused)
		pause_all(g, s, now);
}

enum gil_slices_change gil_slices__tick(struct gil_slices *g, struct session *s, u64 now)
{
	double share;

	if (!g->began)
		g->began = now;
	if (now < g->next || g->limited)
		return GIL_SLICES_AS_BEFORE;
	if (g->paused) {
		resume(g, s, now);
		return GIL_SLICES_RESUMED;
	}
	share = load(g, now);
	if (g->slicing && share < 0.25) {
		/* the load is low again: this is the last slice, and from here on everything is measured */
		record(g, s, now);
		g->slicing = false;
		g->began = now;
		g->pause = 0;
	} else if (share > 1 || g->slicing) {
		pause_all(g, s, now);
		return GIL_SLICES_PAUSED;
	}
	return GIL_SLICES_AS_BEFORE;
}

void gil_slices__stop(struct gil_slices *g, struct session *s)
{
	u64 now = session__now(s);

	if (!g->slicing)
		return;
	g->slicing = false;
	if (g->paused) {
		/* the recording ends in a pause: a slice without a length */
		g->began = now;
		g->pause = now - g->paused;
	} else {
		/* what ends from here on is not in the last slice */
		g->paused = now;
		set_control(s, g, now);
	}
	record(g, s, now);
}
