// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/meta.h"
#include "model/view.h"

const char *loss__reason(s64 reason)
{
	static const char *const words[LOSS_REASONS] = {
		[LOSS_RING_FULL] = "ring full",
		[LOSS_STORAGE] = "no memory for a thread's state",
		[LOSS_DEPTH] = "calls nested too deep",
		[LOSS_RECURSION] = "probe skipped inside another probe",
		[LOSS_RETURN] = "return not seen",
		[LOSS_MAP_FULL] = "a table in the kernel was full",
		[LOSS_MMAP] = "mappings missed",
		[LOSS_BLIND] = "before the library was probed",
		[LOSS_READ] = "the target's memory could not be read",
		[LOSS_WRITE] = "the trace file could not be written",
		[LOSS_TORN] = "a stack changed while it was read, or made no sense",
	};

	return reason > 0 && reason < LOSS_REASONS && words[reason] ? words[reason] :
								      "for a reason unknown to this version";
}

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

static void facts__add_loss(struct load *l, const struct loss *one)
{
	struct trace_facts *f = l->facts;
	const struct schema_family *family;
	struct loss *more;
	u32 i;

	for (i = 0; i < f->n_losses; i++) {
		more = &f->losses[i];
		if (more->family != one->family || more->reason != one->reason || more->object != one->object)
			continue;
		more->count += one->count;
		more->first = one->first < more->first ? one->first : more->first;
		more->last = one->last > more->last ? one->last : more->last;
		return;
	}
	more = realloc(f->losses, (f->n_losses + 1) * sizeof(*more));
	if (!more) {
		l->err = -ENOMEM;
		return;
	}
	f->losses = more;
	more += f->n_losses++;
	*more = *one;
	family = schema__family_by_id(trace__schema(l->trace), (u8)one->family);
	more->family_name = family && one->family < 256 ? family->name : NULL;
	more->reason_name = loss__reason(one->reason);
}

static int on_meta(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct load *l = arg;
	struct trace_facts *f = l->facts;
	struct loss loss;

	for (; v.i < rows__count(rows); v.i++) {
		if (!strcmp(v.event->name, "meta_end")) {
			f->end_reason = view__get(&v, "reason");
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

int trace_facts__load(struct trace_facts *f, struct trace *t, const char *file, u64 from, u64 to)
{
	const struct schema *s = trace__schema(t);
	const struct schema_event *meta[3] = { 0 }, *objects[2] = { 0 }, *e;
	struct load l = { .facts = f, .trace = t };
	struct trace_filter filter = { .kinds = meta };
	u32 n = 0;
	int err;

	memset(f, 0, sizeof(*f));
	f->file = file;
	f->head = trace__head(t);
	f->summary = trace__summary(t);
	f->start = f->head->monotonic ? f->head->monotonic : f->summary->first;
	f->from = from;
	f->to = to;
	e = schema__event(s, "meta_loss");
	if (e)
		meta[n++] = e;
	e = schema__event(s, "meta_end");
	if (e)
		meta[n++] = e;
	err = n ? trace__read(t, &filter, on_meta, &l) : 0;
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

u64 trace_facts__realtime(const struct trace_facts *f, u64 monotonic)
{
	return f->head->realtime ? f->head->realtime + (monotonic - f->head->monotonic) : 0;
}
