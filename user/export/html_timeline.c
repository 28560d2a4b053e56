// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "export/html_timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/gpu_busy.h"
#include "util/array.h"

/* A cell is at least the time's length by this. */
#define CELLS_MAX (1u << 22)
/* No line has fewer runs than this because others have many. */
#define LINE_MIN 16

u32 timeline_runs_max = 60000, timeline_threads_max = 300;

static bool is_equal(const struct timeline_run *a, const struct timeline_run *b)
{
	return a->what == b->what && !memcmp(a->shares, b->shares, sizeof(a->shares));
}

/* Adds what another run has in the same cell. */
static void join_runs(const struct whats *w, struct timeline_run *to, const struct timeline_run *from)
{
	to->what = whats__common(w, to->what, from->what);
	for (u32 i = 0; i < FINDING_COLOURS; i++)
		to->shares[i] += from->shares[i];
}

/* Behind the others; its first cell may be the last one's last. 0 or -ENOMEM. */
static int append(const struct whats *w, struct timeline_line *l, struct timeline_run run)
{
	struct timeline_run *last = l->n ? &l->runs[l->n - 1] : NULL, cell;

	if (last && last->cell + last->n > run.cell) {
		cell = *last;
		cell.cell = run.cell;
		cell.n = 1;
		join_runs(w, &cell, &run);
		if (!--last->n)
			l->n--;
		if (!array__push(l->runs, l->n, cell))
			return -ENOMEM;
		run.cell++;
		if (!--run.n)
			return 0;
		last = &l->runs[l->n - 1];
	}
	if (last && last->cell + last->n == run.cell && is_equal(last, &run)) {
		last->n += run.n;
		return 0;
	}
	return array__push(l->runs, l->n, run) ? 0 : -ENOMEM;
}

/* A cell of a run becomes half of a cell that is twice as long. */
static int append_half(const struct whats *w, struct timeline_line *l, struct timeline_run run, u32 cell)
{
	run.cell = cell / 2;
	run.n = 1;
	for (u32 i = 0; i < FINDING_COLOURS; i++)
		run.shares[i] /= 2;
	return append(w, l, run);
}

/* Makes the line's cells twice as long. 0 or -ENOMEM; the line is then incomplete. */
static int coarsen(const struct whats *w, struct timeline_line *l)
{
	struct timeline_line next = { .width = 2 * l->width, .busy_ns = l->busy_ns, .known_ns = l->known_ns };
	int err = 0;

	for (u32 i = 0; !err && i < l->n; i++) {
		struct timeline_run run = l->runs[i];
		u32 begin = run.cell, end = run.cell + run.n;

		if (begin % 2)
			err = append_half(w, &next, run, begin++);
		if (!err && end / 2 > begin / 2) {
			run.cell = begin / 2;
			run.n = end / 2 - begin / 2;
			err = append(w, &next, run);
		}
		if (!err && end > begin && end % 2)
			err = append_half(w, &next, run, end - 1);
	}
	free(l->runs);
	*l = next;
	return err;
}

/* Coarsens the line while it has too many runs. A line of one cell has one. */
static int limit_line(struct html_timeline *t, struct timeline_line *l)
{
	int err = 0;

	while (!err && l->n > t->line_max && l->width < t->to - t->from) {
		t->runs -= l->n;
		err = coarsen(&t->whats, l);
		t->runs += l->n;
	}
	return err;
}

static int limit_all(struct html_timeline *t)
{
	int err = 0;

	while (!err && t->runs > timeline_runs_max && t->line_max > LINE_MIN) {
		t->line_max /= 2;
		for (u32 i = 0; !err && i < t->lines.n; i++)
			err = limit_line(t, map__value(&t->lines, i));
	}
	return err;
}

/* A part of one cell, or whole cells */
static int add_cells(const struct whats *w, struct timeline_line *l, u64 from, u64 to, u32 colour, u32 what)
{
	struct timeline_run run = { .cell = (u32)(from / l->width), .n = 1, .what = what };
	u64 whole = from % l->width ? 0 : (to - from) / l->width, rest = l->width - from % l->width, end;
	int err;

	if (whole) {
		run.n = (u32)whole;
		run.shares[colour] = 1;
		end = from + whole * l->width;
	} else {
		end = rest < to - from ? from + rest : to;
		run.shares[colour] = (float)(end - from) / (float)l->width;
	}
	err = append(w, l, run);
	return err || end == to ? err : add_cells(w, l, end, to, colour, what);
}

int html_timeline__add(struct html_timeline *t, struct timeline_key key, u64 from, u64 to, enum finding_colour colour,
		       u32 what)
{
	struct timeline_line *l = t->line;
	u32 before;
	int err;

	from = from < t->from ? t->from : from;
	to = to > t->to ? t->to : to;
	if (from >= to)
		return 0;
	if (!l || key.tid != t->last.tid || key.pid != t->last.pid || key.is_gpu != t->last.is_gpu)
		l = t->line = map__get(&t->lines, &key);
	if (!l)
		return -ENOMEM;
	t->last = key;
	if (!l->width)
		l->width = (t->to - t->from) / CELLS_MAX + 1;
	l->known_ns += to - from;
	l->busy_ns += colour == COLOUR_IDLE || colour == COLOUR_ASLEEP ? 0 : to - from;
	before = l->n;
	err = add_cells(&t->whats, l, from - t->from, to - t->from, colour, what);
	t->runs += l->n - before;
	if (!err)
		err = limit_line(t, l);
	return err ? err : limit_all(t);
}

static int on_interval(const struct activity_interval *i, void *arg)
{
	struct timeline_key key = { .pid = i->thread.pid, .tid = i->thread.tid };
	struct html_timeline *t = arg;
	struct what what = { .reason = i->reason };
	u32 number;

	if (i->state == ACTIVITY_UNKNOWN)
		return 0;
	what.colour = findings__colour(profile__find(findings__input(t->findings)->profile, i));
	if (i->state == ACTIVITY_BLOCKED) {
		what.stack = i->off_stack ? i->off_stack : i->stack;
		what.caused_by_stack = i->caused_by_stack;
		what.caused_by = i->caused_by;
	}
	number = whats__number(&t->whats, &what);
	if (number == ~0u)
		return -ENOMEM;
	return html_timeline__add(t, key, i->from, i->to, what.colour, number);
}

void html_timeline__init(struct html_timeline *t, u64 from, u64 to)
{
	*t = (struct html_timeline){ .from = from, .to = to, .line_max = timeline_runs_max };
	map__init(&t->lines, sizeof(struct timeline_key), sizeof(struct timeline_line));
	whats__init(&t->whats);
}

struct gpus {
	struct html_timeline *timeline;
	struct gpu_busy busy;
	struct map until; /* u32 device -> u64 end of its last work, ns */
};

static int on_busy(u32 device, u64 from, u64 to, void *arg)
{
	struct gpus *g = arg;
	const struct gpu_device_key *k = gpu_busy__key(&g->busy, device);
	struct timeline_key line = { k->pid, k->device, 1 };
	u64 *until = map__get(&g->until, &device);
	int err = until ? 0 : -ENOMEM;

	if (!err && *until)
		err = html_timeline__add(g->timeline, line, *until, from, COLOUR_IDLE, WHAT_GPU_IDLE);
	if (!err) {
		*until = to;
		err = html_timeline__add(g->timeline, line, from, to, COLOUR_RUN, WHAT_GPU_BUSY);
	}
	return err;
}

static int read_gpus(struct html_timeline *t, const struct query *q)
{
	struct gpus g = { .timeline = t };
	int err;

	map__init(&g.until, sizeof(u32), sizeof(u64));
	err = gpu_busy__read(&g.busy, q, on_busy, &g);
	gpu_busy__free(&g.busy);
	map__free(&g.until);
	return err;
}

int html_timeline__read(struct html_timeline *t, const struct query *q)
{
	struct trace_window w = query__window(q);
	int err;

	html_timeline__init(t, w.from, w.to);
	err = findings__read(&t->findings, q, 0);
	if (!err)
		err = activity__read(findings__activity(t->findings), on_interval, t);
	return err ? err : read_gpus(t, q);
}

void html_timeline__free(struct html_timeline *t)
{
	for (u32 i = 0; i < t->lines.n; i++)
		free(((struct timeline_line *)map__value(&t->lines, i))->runs);
	map__free(&t->lines);
	whats__free(&t->whats);
	findings__free(t->findings);
}
