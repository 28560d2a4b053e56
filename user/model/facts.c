// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/facts.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/meta.h"
#include "model/facts_private.h"
#include "model/pauses.h"
#include "model/view.h"
#include "trace/loss.h"
#include "util/array.h"
#include "util/compare.h"
#include "util/map.h"
#include "util/search.h"

const char *end__reason(s64 reason)
{
	switch (reason) {
	case END_SIGNAL:
		return "stopped by a signal";
	case END_DURATION:
		return "the duration was over";
	case END_TARGETS:
		return "every target had ended";
	case END_COMMAND:
		return "the command had ended";
	case END_ERROR:
		return "stopped by an error";
	case END_SCHEDULE:
		return "the schedule was over";
	case END_RANGES:
		return "the capture range had ended";
	case 0:
		return "cut off";
	default:
		return "ended for a reason unknown to this version";
	}
}

#define WINDOWS_MAX 4096

/* A recording has a few losses for each library. More, of a hostile file, are counted without their object. */
#define LOSSES_MAX 4096

struct loss_key {
	u16 family, object;
	u32 outside;
	s64 reason;
};

struct load {
	struct trace_facts *facts;
	struct map losses; /* loss_key -> index + 1 in the facts' losses */
	const char **paths; /* by object, which has 16 bits */
	struct trace *trace;
	u64 *stops; /* when detaching began, for each merged trace */
	u32 n_stops;
	struct pauses pauses;
	struct pauses unmeasured;
	int err;
};

/* Counts the events of a family; for core, whose losses may concern any family, those of all families. */
static u64 recorded(const struct trace *t, u16 family)
{
	const struct kind_summary *kinds;
	u64 sum = 0;
	u32 i, n;

	kinds = trace__kinds(t, &n);
	for (i = 0; i < n; i++) {
		u32 of = EVENT_FAMILY(kinds[i].event->id);

		sum += of && (!family || of == family) ? kinds[i].events : 0;
	}
	return sum;
}

static void facts__add_loss(struct load *l, struct loss *one)
{
	const struct schema_family *family = schema__family_by_id(trace__schema(l->trace), (u8)one->family);
	struct trace_facts *f = l->facts;
	struct loss_key key;
	u32 *index;

	one->family_name = family && one->family < 256 ? family->name : NULL;
	one->recorded = recorded(l->trace, one->family);
	one->outside = loss__is_outside(one->family, one->reason, one->first, one->last, f->from ? f->from : f->live,
					f->to ? f->to : f->stop);
	if (one->reason < 0 || one->reason >= LOSS_REASONS)
		one->reason = 0;
	key = (struct loss_key){ one->family, one->object, one->outside, one->reason };
	if (f->n_losses >= LOSSES_MAX && !map__find(&l->losses, &key)) {
		key.object = one->object = 0;
		if (!one->family_name)
			key.family = one->family = 0;
	}
	index = map__get(&l->losses, &key);
	if (index && *index)
		loss__join(&f->losses[*index - 1], one);
	else if (index && array__push(f->losses, f->n_losses, *one))
		*index = f->n_losses;
	else
		l->err = -ENOMEM;
}

/* The number of the trace, of several merged ones, that the event is of (merge.c) */
static u16 input_of(const struct view *v)
{
	return (u16)view__get(v, "cpu");
}

static void on_end(struct load *l, const struct view *v)
{
	u64 stop = (u64)view__get(v, "stop");

	l->facts->end_reason = view__get(v, "reason");
	l->err = pauses__stop(&l->pauses, input_of(v), stop) ?: pauses__stop(&l->unmeasured, input_of(v), stop);
	if (!array__push(l->stops, l->n_stops, stop))
		l->err = -ENOMEM;
}

/* Adds the window of a meta_cost event, which states how long before it tracing became live. */
static void on_cost(struct load *l, const struct view *v)
{
	struct trace_facts *f = l->facts;
	u64 time = (u64)view__get(v, "time"), live = time - (u64)view__get(v, "wall");
	struct trace_window *w;

	if (live > time)
		return;
	l->err = pauses__recorded(&l->pauses, input_of(v), live, time) ?:
			 pauses__recorded(&l->unmeasured, input_of(v), live, time);
	for (u32 i = 0; i < f->n_windows; i++) {
		w = &f->windows[i];
		/* a hostile file may have very many windows: further ones are joined */
		if ((live > w->to || time < w->from) && i + 1 < WINDOWS_MAX)
			continue;
		w->from = live < w->from ? live : w->from;
		w->to = time > w->to ? time : w->to;
		return;
	}
	if (!array__push(f->windows, f->n_windows, (struct trace_window){ live, time }))
		l->err = -ENOMEM;
}

static int add_pause(struct pauses *p, const struct view *v)
{
	return pauses__add(p, input_of(v), (u64)view__get(v, "start"), (u64)view__get(v, "time"));
}

static int on_times(const struct rows *rows, void *arg)
{
	struct load *l = arg;

	ROWS_WHILE(!l->err, v, rows) {
		if (!strcmp(v.event->name, "meta_end"))
			on_end(l, &v);
		else if (!strcmp(v.event->name, "meta_pause"))
			l->err = add_pause(&l->pauses, &v);
		else if (!strcmp(v.event->name, "meta_unmeasured"))
			l->err = add_pause(&l->unmeasured, &v);
		else if (!strcmp(v.event->name, "meta_range"))
			l->facts->n_ranges += view__get(&v, "since") != 0;
		else
			on_cost(l, &v);
	}
	return l->err;
}

static int on_loss(const struct rows *rows, void *arg)
{
	struct load *l = arg;
	struct trace_facts *f = l->facts;
	struct loss loss;

	ROWS_EACH(v, rows) {
		loss = (struct loss){
			.family = (u16)view__get(&v, "family"),
			.object = (u16)view__get(&v, "object"),
			.reason = view__get(&v, "reason"),
			.count = (u64)view__get(&v, "count"),
			.first = (u64)view__get(&v, "first"),
			.last = (u64)view__get(&v, "last"),
		};
		/* an object without probes does not get any later */
		if ((loss.last >= f->from || loss.reason == LOSS_UNPROBED) && (!f->to || loss.first < f->to))
			facts__add_loss(l, &loss);
	}
	return l->err;
}

static int on_object(const struct rows *rows, void *arg)
{
	struct load *l = arg;
	s64 object;

	ROWS_EACH(v, rows) {
		object = view__get(&v, "object");
		if (object > 0 && object <= UINT16_MAX)
			l->paths[object] = trace__string(l->trace, (u32)view__get(&v, "path"));
	}
	return 0;
}

static int on_refused(const struct rows *rows, void *arg)
{
	struct load *l = arg;
	struct trace_facts *f = l->facts;

	ROWS_EACH(v, rows) {
		const struct schema_family *family =
			schema__family_by_id(trace__schema(l->trace), (u8)view__get(&v, "family"));

		if (!array__push(f->refused, f->n_refused,
				 (struct refused){
					 .family_name = family ? family->name : NULL,
					 .program = trace__string(l->trace, (u32)view__get(&v, "program")),
					 .why = trace__string(l->trace, (u32)view__get(&v, "why")),
					 .lacks = trace__string(l->trace, (u32)view__get(&v, "lacks")),
					 .is_whole_family = view__get(&v, "all") != 0,
				 }))
			return -ENOMEM;
	}
	return 0;
}

static int on_warning(const struct rows *rows, void *arg)
{
	struct load *l = arg;
	struct trace_facts *f = l->facts;

	ROWS_EACH(v, rows)
		if (f->n_warnings < WARNINGS_MAX &&
		    !array__push(f->warnings, f->n_warnings, trace__string(l->trace, (u32)view__get(&v, "text"))))
			return -ENOMEM;
	return 0;
}

COMPARE_BY(by_time, struct trace_window, ASCENDING(from))

/* Sorts windows by time and joins those that overlap. Returns how many are left. */
static u32 join_windows(struct trace_window *list, u32 count)
{
	u32 n = 0;

	if (count)
		qsort(list, count, sizeof(*list), by_time);
	for (u32 i = 0; i < count; i++) {
		if (n && list[i].from <= list[n - 1].to)
			list[n - 1].to = list[i].to > list[n - 1].to ? list[i].to : list[n - 1].to;
		else
			list[n++] = list[i];
	}
	return n;
}

/* Appends what the pauses, which are sorted from *first on, leave of a window. 0 or -ENOMEM */
static int add_without_pauses(struct trace_facts *f, struct trace_window w, const struct pauses *pauses, u32 *first)
{
	while (*first < pauses->n_joint && pauses->joint[*first].to <= w.from)
		(*first)++;
	for (u32 i = *first; i < pauses->n_joint && pauses->joint[i].from < w.to; i++) {
		const struct joint_pause *p = &pauses->joint[i];

		if (p->from > w.from &&
		    !array__push(f->windows, f->n_windows, (struct trace_window){ w.from, p->from }))
			return -ENOMEM;
		f->paused_ns += (p->to < w.to ? p->to : w.to) - (p->from > w.from ? p->from : w.from);
		w.from = p->to < w.to ? p->to : w.to;
	}
	if (w.from < w.to && !array__push(f->windows, f->n_windows, w))
		return -ENOMEM;
	return 0;
}

/* Removes the pauses from the windows, of which one is left that is empty if all was paused. */
static int remove_pauses(struct trace_facts *f, struct pauses *pauses)
{
	struct trace_window *all = f->windows;
	u32 n = f->n_windows, first = 0;
	int err = pauses__join(pauses, false);

	if (err || !pauses->n_joint)
		return err;
	f->windows = NULL;
	f->n_windows = 0;
	for (u32 i = 0; !err && i < n; i++)
		err = add_without_pauses(f, all[i], pauses, &first);
	if (!err && !f->n_windows &&
	    !array__push(f->windows, f->n_windows, (struct trace_window){ all[n - 1].to, all[n - 1].to }))
		err = -ENOMEM;
	if (!err) {
		f->begins_paused = f->windows[0].from > all[0].from;
		f->ends_paused = f->windows[f->n_windows - 1].to < all[n - 1].to || f->windows[0].from == all[n - 1].to;
	}
	free(all);
	return err;
}

/* A window ends with the last stop before the next one begins; without a stop the recording was cut off. */
static u64 window_end(const struct trace_facts *f, const struct load *l, u32 i)
{
	u64 next = i + 1 < f->n_windows ? f->windows[i + 1].from : ~0ull, end = 0;

	for (u32 k = 0; k < l->n_stops; k++)
		if (l->stops[k] > f->windows[i].from && l->stops[k] < next && l->stops[k] > end)
			end = l->stops[k];
	if (next == ~0ull && (!end || end > f->summary->last))
		return f->summary->last;
	return end ? end : f->windows[i].to;
}

static void sum_windows(struct trace_facts *f)
{
	u64 sum = 0;

	for (u32 i = 0; i < f->n_windows; i++) {
		f->before[i] = sum;
		sum += f->windows[i].to - f->windows[i].from;
	}
}

/* A trace that was cut off ends with its last event; older traces record neither end. */
static int settle_times(struct trace_facts *f, struct load *l)
{
	const struct trace_summary *s = f->summary;

	if (!f->n_windows) {
		f->windows = calloc(1, sizeof(*f->windows));
		if (!f->windows)
			return -ENOMEM;
		f->windows[f->n_windows++] = (struct trace_window){ f->start, s->last };
	}
	f->n_windows = join_windows(f->windows, f->n_windows);
	if (f->windows[0].from < f->start || f->windows[0].from > s->last)
		f->windows[0].from = f->start;
	for (u32 i = 0; i < f->n_windows; i++)
		f->windows[i].to = window_end(f, l, i);
	if (f->windows[f->n_windows - 1].to < f->windows[f->n_windows - 1].from)
		f->windows[f->n_windows - 1].to = f->windows[f->n_windows - 1].from;
	if (remove_pauses(f, &l->pauses))
		return -ENOMEM;
	f->live = f->windows[0].from;
	f->stop = f->windows[f->n_windows - 1].to;
	f->pauses_joined = l->pauses.is_full;
	f->before = calloc(f->n_windows, sizeof(*f->before));
	if (!f->before)
		return -ENOMEM;
	sum_windows(f);
	return 0;
}

bool trace_facts__enter_window(const struct trace_facts *f, u32 *window, u64 time)
{
	u32 last = *window;

	while (*window + 1 < f->n_windows && time >= f->windows[*window + 1].from)
		++*window;
	return *window > last;
}

/* Returns the ns of the traced time before a moment. */
static u64 traced_before(const struct trace_facts *f, u64 time)
{
	u32 i = (u32)SEARCH(f->n_windows, k, f->windows[k].to <= time);
	const struct trace_window *last = i ? &f->windows[i - 1] : NULL;

	if (i == f->n_windows)
		return last ? f->before[i - 1] + (last->to - last->from) : 0;
	return f->before[i] + (time > f->windows[i].from ? time - f->windows[i].from : 0);
}

u64 trace_facts__inside(const struct trace_facts *f, u64 from, u64 to)
{
	return to > from ? traced_before(f, to) - traced_before(f, from) : 0;
}

void trace_facts__widen(struct trace_facts *f, u64 from, u64 to)
{
	if (!f->n_windows)
		return;
	if (from && from < f->windows[0].from)
		f->windows[0].from = from;
	if (to > f->windows[f->n_windows - 1].to)
		f->windows[f->n_windows - 1].to = to;
	sum_windows(f);
	facts_unmeasured__sum(f);
}

int trace_facts__leave_out_pauses(struct trace_facts *f, struct trace *t)
{
	u32 n = 0;

	if (!f->paused_ns)
		return 0;
	f->unpaused = calloc((size_t)f->n_windows + 2, sizeof(*f->unpaused));
	if (!f->unpaused)
		return -ENOMEM;
	/*
	 * what lies between two windows is left out: so an empty one is before a pause at the begin, and after one at
	 * the end
	 */
	if (f->begins_paused)
		n++;
	memcpy(f->unpaused + n, f->windows, f->n_windows * sizeof(*f->windows));
	if (!f->begins_paused)
		f->unpaused[n].from = 0;
	n += f->n_windows;
	if (f->ends_paused)
		f->unpaused[n++] = (struct trace_window){ ~0ull, ~0ull };
	else
		f->unpaused[n - 1].to = ~0ull;
	trace__set_windows(t, f->unpaused, n);
	return 0;
}

u64 trace_facts__traced(const struct trace_facts *f)
{
	return trace_facts__inside(f, f->live, f->stop);
}

static int read_losses(struct load *l)
{
	struct trace_facts *f = l->facts;
	int err;

	map__init(&l->losses, sizeof(struct loss_key), sizeof(u32));
	err = trace__read_kind(l->trace, "meta_loss", on_loss, l);
	map__free(&l->losses);
	if (err || !f->n_losses)
		return err;
	l->paths = calloc(UINT16_MAX + 1, sizeof(*l->paths));
	if (!l->paths)
		return -ENOMEM;
	err = trace__read_kind(l->trace, "meta_object", on_object, l);
	for (u32 i = 0; i < f->n_losses; i++)
		f->losses[i].path = l->paths[f->losses[i].object];
	free(l->paths);
	return err;
}

int trace_facts__load(struct trace_facts *f, struct trace *t, const char *file, u64 from, u64 to)
{
	const struct schema *s = trace__schema(t);
	static const char *const kinds[] = { "meta_end", "meta_cost", "meta_pause", "meta_unmeasured", "meta_range" };
	const struct schema_event *meta[ARRAY_LEN(kinds) + 1] = { 0 }, *e;
	struct load l = { .facts = f, .trace = t };
	struct trace_filter filter = { .kinds = meta };
	u32 n = 0, i;
	int err;

	memset(f, 0, sizeof(*f));
	f->file = file;
	f->head = trace__head(t);
	f->summary = trace__summary(t);
	f->start = f->head->monotonic ? f->head->monotonic : f->summary->first;
	f->from = from;
	f->to = to;
	for (i = 0; i < ARRAY_LEN(kinds); i++) {
		e = schema__event(s, kinds[i]);
		if (e)
			meta[n++] = e;
	}
	err = n ? trace__read(t, &filter, on_times, &l) : 0;
	if (!err)
		err = settle_times(f, &l);
	if (!err)
		err = facts_unmeasured__settle(f, &l.unmeasured);
	free(l.stops);
	pauses__free(&l.pauses);
	pauses__free(&l.unmeasured);
	/* which losses count depends on the traced time */
	if (!err)
		err = read_losses(&l);
	if (!err)
		err = trace__read_kind(l.trace, "meta_refused", on_refused, &l);
	if (!err)
		err = trace__read_kind(l.trace, "meta_warning", on_warning, &l);
	f->damaged = trace__damaged(t);
	return err;
}

void trace_facts__free(struct trace_facts *f)
{
	free(f->losses);
	free(f->refused);
	free(f->warnings);
	free(f->windows);
	free(f->before);
	free(f->unpaused);
	free(f->unmeasured);
	free(f->unmeasured_before);
	memset(f, 0, sizeof(*f));
}

struct loss_times trace_facts__times(const struct trace_facts *f)
{
	return (struct loss_times){ .start = f->start, .live = f->live, .stop = f->stop };
}

u64 trace_facts__realtime(const struct trace_facts *f, u64 monotonic)
{
	return f->head->realtime ? f->head->realtime + (monotonic - f->head->monotonic) : 0;
}
