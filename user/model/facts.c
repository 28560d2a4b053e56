// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/meta.h"
#include "model/view.h"

const char *end__reason(s64 reason)
{
	switch (reason) {
	case END_SIGNAL:
		return "stopped by a signal";
	case END_DURATION:
		return "the time asked for was up";
	case END_TARGETS:
		return "every target had ended";
	case END_COMMAND:
		return "the command had ended";
	case END_ERROR:
		return "stopped by an error";
	case 0:
		return "cut off";
	default:
		return "ended for a reason unknown to this version";
	}
}

struct load {
	struct trace_facts *facts;
	struct trace *trace;
	int err;
};

/* Events in the trace: of a family, or for core, whose losses are of any, of all. */
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

	one->family_name = family && one->family < 256 ? family->name : NULL;
	one->recorded = recorded(l->trace, one->family);
	if (losses__add_to(&f->losses, &f->n_losses, one))
		l->err = -ENOMEM;
}

static void on_end(struct trace_facts *f, const struct view *v)
{
	u64 stop = (u64)view__get(v, "stop");

	f->end_reason = view__get(v, "reason");
	f->stop = stop > f->stop ? stop : f->stop;
}

static void on_cost(struct trace_facts *f, const struct view *v)
{
	u64 live = (u64)view__get(v, "time") - (u64)view__get(v, "wall");

	f->live = !f->live || live < f->live ? live : f->live;
}

static int on_meta(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct load *l = arg;
	struct trace_facts *f = l->facts;
	struct loss loss;

	for (; v.i < rows__count(rows); v.i++) {
		if (!strcmp(v.event->name, "meta_end")) {
			on_end(f, &v);
			continue;
		}
		if (!strcmp(v.event->name, "meta_cost")) {
			on_cost(f, &v);
			continue;
		}
		loss = (struct loss){
			.family = (u16)view__get(&v, "family"),
			.object = (u16)view__get(&v, "object"),
			.reason = view__get(&v, "reason"),
			.count = (u64)view__get(&v, "count"),
			.first = (u64)view__get(&v, "first"),
			.last = (u64)view__get(&v, "last"),
		};
		if (loss.last >= f->from && (!f->to || loss.first < f->to))
			facts__add_loss(l, &loss);
	}
	return l->err;
}

static int on_object(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct load *l = arg;
	u32 i;

	for (; v.i < rows__count(rows); v.i++) {
		for (i = 0; i < l->facts->n_losses; i++) {
			if (l->facts->losses[i].object && l->facts->losses[i].object == view__get(&v, "object"))
				l->facts->losses[i].path = trace__string(l->trace, (u32)view__get(&v, "path"));
		}
	}
	return 0;
}

static int on_refused(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct load *l = arg;
	struct trace_facts *f = l->facts;

	for (; v.i < rows__count(rows); v.i++) {
		const struct schema_family *family =
			schema__family_by_id(trace__schema(l->trace), (u8)view__get(&v, "family"));
		struct refused *bigger = reallocarray(f->refused, f->n_refused + 1, sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		f->refused = bigger;
		bigger[f->n_refused++] = (struct refused){
			.family_name = family ? family->name : NULL,
			.program = trace__string(l->trace, (u32)view__get(&v, "program")),
			.why = trace__string(l->trace, (u32)view__get(&v, "why")),
			.lacks = trace__string(l->trace, (u32)view__get(&v, "lacks")),
			.all = view__get(&v, "all") != 0,
		};
	}
	return 0;
}

/* A trace that is cut off ends with its last event; older ones say nothing of either. */
static void settle_times(struct trace_facts *f)
{
	const struct trace_summary *s = f->summary;

	if (f->live < f->start || f->live > s->last)
		f->live = f->start;
	if (f->stop <= f->live || f->stop > s->last)
		f->stop = s->last;
}

u64 trace_facts__traced(const struct trace_facts *f)
{
	return f->stop > f->live ? f->stop - f->live : 0;
}

int trace_facts__load(struct trace_facts *f, struct trace *t, const char *file, u64 from, u64 to)
{
	const struct schema *s = trace__schema(t);
	static const char *const kinds[] = { "meta_loss", "meta_end", "meta_cost" };
	const struct schema_event *meta[4] = { 0 }, *objects[2] = { 0 }, *e;
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
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		e = schema__event(s, kinds[i]);
		if (e)
			meta[n++] = e;
	}
	err = n ? trace__read(t, &filter, on_meta, &l) : 0;
	settle_times(f);
	objects[0] = schema__event(s, "meta_object");
	filter.kinds = objects;
	if (!err && objects[0] && f->n_losses)
		err = trace__read(t, &filter, on_object, &l);
	objects[0] = schema__event(s, "meta_refused");
	if (!err && objects[0])
		err = trace__read(t, &filter, on_refused, &l);
	f->damaged = trace__damaged(t);
	return err;
}

void trace_facts__free(struct trace_facts *f)
{
	free(f->losses);
	free(f->refused);
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
