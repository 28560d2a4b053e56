// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Measuring in slices of time. A probe costs about 2 us with its trap. A thread that waits for the GIL 100,000 times
 * a second is slowed by that, and the timing of the others changes. So above a number of waits per second the probes
 * are detached, and attached again for a slice now and then. The trace says which times were measured (gil_slice).
 * docs/gil.md has the measurements.
 */
#include <bpf/bpf.h>

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

	session__map_set(s, "gil_controls", &zero, &control, BPF_ANY);
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
}

static void pause_all(struct gil_slices *g, struct session *s, u64 now)
{
	g->paused = session__now(s);
	/* the programs first, which stop all at once; they write what is open */
	set_control(s, g, g->paused);
	if (g->slicing)
		record(g, s, g->paused);
	if (!session__test_switch("attached-gil-slices"))
		session__pause(s, "gil");
	session__run_iter(s, "gil_open_waits");
	g->slicing = true;
	g->next = now + GIL_PAUSE;
}

static void resume(struct gil_slices *g, struct session *s, u64 now)
{
	if (!session__test_switch("attached-gil-slices"))
		session__resume(s, "gil");
	g->number++;
	g->waits_at_start = g->waits;
	g->began = session__now(s);
	g->pause = g->began - g->paused;
	g->paused = 0;
	set_control(s, g, 0);
	/* records drained from here on count for the slice */
	load(g, now);
	g->next = now + GIL_SLICE;
}

enum gil_slices_change gil_slices__tick(struct gil_slices *g, struct session *s, u64 now)
{
	double share;

	if (now < g->next)
		return GIL_SLICES_AS_BEFORE;
	if (g->paused) {
		resume(g, s, now);
		return GIL_SLICES_RESUMED;
	}
	share = load(g, now);
	if (g->slicing && share < 0.25) {
		/* the load is low again: this is the last slice, and from here on everything is measured */
		record(g, s, session__now(s));
		g->slicing = false;
	} else if (share > 1 || g->slicing) {
		pause_all(g, s, now);
		return GIL_SLICES_PAUSED;
	}
	return GIL_SLICES_AS_BEFORE;
}

void gil_slices__stop(struct gil_slices *g, struct session *s)
{
	if (g->slicing && !g->paused)
		record(g, s, session__now(s));
}
