// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Draws spans, instants, their arguments, and flows from the thread that released a lock to the thread that waited. */
#include <string.h>
#include <xxhash.h>

#include "export/perfetto.h"
#include "probes/cuda/cuda.h"
#include "probes/cudadrv/cudadrv.h"
#include "util/array.h"

/* TrackEvent */
enum {
	TRACK_EVENT_CATEGORY_IIDS = 3,
	TRACK_EVENT_ARGUMENTS = 4,
	TRACK_EVENT_TYPE = 9,
	TRACK_EVENT_NAME_IID = 10,
	TRACK_EVENT_TRACK = 11,
	TRACK_EVENT_NAME = 23,
	TRACK_EVENT_FLOWS = 47,
	TRACK_EVENT_FLOWS_END = 48,
	TRACK_EVENT_CALLSTACK_IID = 56,
};

/* DebugAnnotation */
enum {
	ARGUMENT_NAME_IID = 1,
	ARGUMENT_BOOL = 2,
	ARGUMENT_UINT = 3,
	ARGUMENT_INT = 4,
	ARGUMENT_DOUBLE = 5,
	ARGUMENT_TEXT = 6,
	ARGUMENT_POINTER = 7,
	ARGUMENT_TEXT_IID = 17,
};

/* The fields of a wait that state when it was ended and by which thread; pid NULL: of the same process. */
static const struct wake {
	const char *kind, *time, *pid, *tid;
} wakes[] = {
	{ "gil_wait", "drop_time", NULL, "dropper" },
	{ "lock_wait", "woken", "waker_pid", "waker_tid" },
};

size_t track_event__begin(struct perfetto *p, u64 time, const struct track *t, enum track_event_type type)
{
	size_t at;

	packet__begin(p, time);
	at = pb__begin(&p->packet, PACKET_TRACK_EVENT);
	pb__int(&p->packet, TRACK_EVENT_TYPE, type);
	pb__int(&p->packet, TRACK_EVENT_TRACK, t->uuid);
	return at;
}

void track_event__end(struct perfetto *p, size_t at)
{
	pb__end(&p->packet, at);
	packet__end(p, true);
}

void track_event__category(struct perfetto *p, const char *category)
{
	pb__int(&p->packet, TRACK_EVENT_CATEGORY_IIDS,
		perfetto__intern(p, INTERN_CATEGORY, category, strlen(category)));
}

static void put_name(struct perfetto *p, const char *category, const char *name)
{
	track_event__category(p, category);
	pb__int(&p->packet, TRACK_EVENT_NAME_IID, perfetto__intern(p, INTERN_NAME, name, strlen(name)));
}

/* Writes an event's title, which may be in a buffer. */
static void put_title(struct perfetto *p, const char *category, const char *title)
{
	size_t len = strlen(title);

	track_event__category(p, category);
	pb__int(&p->packet, TRACK_EVENT_NAME_IID,
		perfetto__intern_by(p, INTERN_NAME, BY_TEXT, map__hash_bytes(title, len), title, len));
}

static size_t begin_argument(struct perfetto *p, const char *name)
{
	size_t at = pb__begin(&p->packet, TRACK_EVENT_ARGUMENTS);

	pb__int(&p->packet, ARGUMENT_NAME_IID, perfetto__intern(p, INTERN_ARGUMENT, name, strlen(name)));
	return at;
}

void track_event__name(struct perfetto *p, const char *name)
{
	pb__text(&p->packet, TRACK_EVENT_NAME, name, strlen(name));
}

void track_event__argument(struct perfetto *p, const char *name, const char *text)
{
	size_t at = begin_argument(p, name);

	pb__text(&p->packet, ARGUMENT_TEXT, text, strlen(text));
	pb__end(&p->packet, at);
}

void track_event__callstack(struct perfetto *p, u64 callstack)
{
	if (callstack)
		pb__int(&p->packet, TRACK_EVENT_CALLSTACK_IID, callstack);
}

/* Is the value empty? True for no stack, thread, time, name or address, and for an empty text. */
static bool is_empty(const struct schema_field *f, const struct field_value *value)
{
	static const char *const units[] = { "stack", "task", "moment", "string", "hex" };

	if (value->type == FIELD_IS_TEXT)
		return !value->len;
	for (size_t i = 0; !value->u && i < ARRAY_LEN(units); i++)
		if (!strcmp(f->unit, units[i]))
			return true;
	return false;
}

static void put_argument(struct perfetto *p, const struct view *v, const struct schema_field *f)
{
	struct field_value value;
	char label[STACK_LABEL];
	size_t at;

	if (field__is_stack(f) && view__s64(v, f)) {
		stacks__label(p->e->stacks, (u32)view__s64(v, f), label, sizeof(label));
		track_event__argument(p, f->name, label);
		return;
	}
	field_value__get(&value, p->e->names, v, f, true);
	if (is_empty(f, &value))
		return;
	at = begin_argument(p, f->name);
	if (value.type == FIELD_IS_TEXT && value.lasts)
		pb__int(&p->packet, ARGUMENT_TEXT_IID, perfetto__intern(p, INTERN_STRING, value.text, value.len));
	else if (value.type == FIELD_IS_TEXT)
		pb__text(&p->packet, ARGUMENT_TEXT, value.text, value.len);
	else if (value.type == FIELD_IS_HEX)
		pb__int(&p->packet, ARGUMENT_POINTER, value.u);
	else if (value.type == FIELD_IS_DOUBLE)
		pb__double(&p->packet, ARGUMENT_DOUBLE, value.d);
	else if (value.u && !strcmp(f->unit, "moment"))
		pb__int(&p->packet, ARGUMENT_UINT, perfetto__boottime(p, value.u));
	else
		pb__int(&p->packet, value.type == FIELD_IS_U64 ? ARGUMENT_UINT : ARGUMENT_INT, value.u);
	pb__end(&p->packet, at);
}

static void put_arguments(struct perfetto *p, const struct view *v, const struct common_fields *f)
{
	u16 flags = (u16)view__s64(v, f->flags);
	const char *text;
	size_t at;
	u32 i;

	u64 callstack = 0;

	if (f->cpu)
		put_argument(p, v, f->cpu);
	for (i = 0; i < v->event->n; i++) {
		const struct schema_field *field = &v->event->fields[i];

		if (field__is_common(v->event, field))
			continue;
		put_argument(p, v, field);
		/* Perfetto allows one stack for an event: the first, which is its own thread's. */
		if (!callstack && field__is_stack(field))
			callstack = perfetto__callstack(p, (u32)view__s64(v, field));
	}
	track_event__callstack(p, callstack);
	for (i = 0; i < 16; i++) {
		text = flags >> i & 1 ? event_flag__text((u16)(1u << i)) : NULL;
		if (!text)
			continue;
		at = begin_argument(p, text);
		pb__int(&p->packet, ARGUMENT_BOOL, 1);
		pb__end(&p->packet, at);
	}
}

/* Marks all CUDA calls as possible launches: only the whole trace shows which ones launched work. */
static void put_submission(struct perfetto *p, const struct view *v, const struct common_fields *f)
{
	u32 family = EVENT_FAMILY(v->event->id);

	if (p->correlates && v->event->is_call &&
	    (family == EVENT_FAMILY(ID_cuda_copy) || family == EVENT_FAMILY(ID_cudadrv_copy)))
		track_event__submission(p, (u32)view__s64(v, f->pid), (u32)view__s64(v, f->tid),
					(u64)view__s64(v, f->start));
}

void track_event__flow(struct perfetto *p, const struct drawn_place *from, bool is_last)
{
	u64 parts[3] = { from->pid, from->tid, from->start };

	pb__fixed64(&p->packet, is_last ? TRACK_EVENT_FLOWS_END : TRACK_EVENT_FLOWS, XXH64(parts, sizeof(parts), 0));
}

static const struct wake *wake_of(const struct view *v)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(wakes); i++) {
		if (!strcmp(v->event->name, wakes[i].kind))
			return &wakes[i];
	}
	return NULL;
}

/* Draws the release on the releasing thread, once for each wait that it ended, because a flow has one end. */
static void put_waker(struct perfetto *p, const char *category, u32 pid, u32 tid, u64 time,
		      const struct drawn_place *wait)
{
	const struct track *t = perfetto__thread(p, pid, tid);
	size_t at;

	if (!t)
		return;
	at = track_event__begin(p, time, t, TRACK_EVENT_INSTANT);
	put_name(p, category, "releases");
	track_event__flow(p, wait, false);
	track_event__end(p, at);
}

/* Draws the end of a wait, from the release until the thread ran: a slice, as flows end where slices begin. */
static void put_released(struct perfetto *p, const char *category, const struct track *t, const struct interval *span,
			 const struct drawn_place *wait)
{
	size_t at = track_event__begin(p, span->start, t, TRACK_EVENT_BEGIN);

	put_name(p, category, "released");
	track_event__flow(p, wait, true);
	track_event__end(p, at);
	at = track_event__begin(p, span->end, t, TRACK_EVENT_END);
	track_event__end(p, at);
}

/* Computes that part of a wait; returns false if no thread released it. */
static bool released_part(const struct view *v, const struct wake *w, const struct interval *span, struct interval *out)
{
	u64 time = (u64)view__get(v, w->time);

	if (!time || !(u32)view__get(v, w->tid))
		return false;
	out->start = time < span->start ? span->start : time > span->end ? span->end : time;
	out->end = span->end;
	return true;
}

/*
 * Draws the part of a wait after its release. Perfetto nests slices that begin or end together by their order in the
 * file: of two begins the first is the outer one, of two ends the first is the inner one. So call this before drawing
 * the wait, or after it if the part is the whole wait. A part that overlaps slices of the thread, such as futex calls,
 * gets a track of its own.
 */
static void put_wake(struct perfetto *p, const struct view *v, const struct common_fields *f, const struct wake *w,
		     const char *category, struct track *of_wait, const struct interval *span,
		     const struct interval *part)
{
	u32 pid = (u32)view__s64(v, f->pid), tid = (u32)view__s64(v, f->tid);
	struct drawn_place wait = { pid, tid, span->start };
	const struct track *t;

	put_waker(p, category, w->pid ? (u32)view__get(v, w->pid) : pid, (u32)view__get(v, w->tid),
		  (u64)view__get(v, w->time), &wait);
	t = perfetto__reserve_near(p, of_wait, pid, tid, TRACK_RELEASED, "released", part);
	if (t)
		put_released(p, category, t, part, &wait);
}

static void put_span(struct perfetto *p, const struct view *v, const struct common_fields *f, const char *category,
		     const struct interval *span)
{
	char buf[EVENT_TITLE];
	const char *title = event__title(p->e->names, v, (u16)view__s64(v, f->probe), buf, sizeof(buf));
	const struct wake *w = wake_of(v);
	u32 pid = (u32)view__s64(v, f->pid), tid = (u32)view__s64(v, f->tid);
	struct interval part;
	struct track *t;
	bool first;
	size_t at;

	t = perfetto__find_track(p, pid, tid, v->event, span);
	if (!t)
		return;
	if (w && !released_part(v, w, span, &part))
		w = NULL;
	first = w && part.start > span->start;
	if (first)
		put_wake(p, v, f, w, category, t, span, &part);
	perfetto__reserve(p, t, span);
	at = track_event__begin(p, span->start, t, TRACK_EVENT_BEGIN);
	put_title(p, category, title);
	put_arguments(p, v, f);
	put_submission(p, v, f);
	track_event__torch_flow(p, v, &(struct drawn_place){ pid, tid, span->start });
	track_event__end(p, at);
	at = track_event__begin(p, span->end, t, TRACK_EVENT_END);
	track_event__end(p, at);
	if (w && !first)
		put_wake(p, v, f, w, category, t, span, &part);
}

static void put_instant(struct perfetto *p, const struct view *v, const struct common_fields *f, const char *category,
			u64 time)
{
	char buf[EVENT_TITLE];
	const char *title = event__title(p->e->names, v, (u16)view__s64(v, f->probe), buf, sizeof(buf));
	u32 pid = (u32)view__s64(v, f->pid), tid = (u32)view__s64(v, f->tid);
	const struct track *t = tid ? perfetto__thread_of_instant(p, pid, tid) :
				      perfetto__track(p, pid, v->event->id, 0, v->event->name, NULL);
	size_t at;

	if (!t)
		return;
	at = track_event__begin(p, time, t, TRACK_EVENT_INSTANT);
	put_title(p, category, title);
	put_arguments(p, v, f);
	put_submission(p, v, f);
	track_event__end(p, at);
}

void perfetto__slice(struct perfetto *p, const struct view *v)
{
	const struct schema_family *family = schema__family_by_id(p->schema, (u8)EVENT_FAMILY(v->event->id));
	struct common_fields f = common_fields__of(v->event);
	struct interval span = { (u64)view__s64(v, f.start), (u64)view__s64(v, f.time) };
	const char *category = family ? family->name : "?";

	if (!v->event->is_span || (view__s64(v, f.flags) & EVENT_NO_DURATION)) {
		put_instant(p, v, &f, category, span.end);
		return;
	}
	if (span.start > span.end)
		span.start = span.end;
	put_span(p, v, &f, category, &span);
}
