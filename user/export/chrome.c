// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes JSON for chrome://tracing ("Trace Event Format"): X is a span, i an event without a duration, M a name. Times
 * are us on CLOCK_MONOTONIC, with ns as decimals. `sf` is the event's stack, an id in stackFrames. chrome_gpu.c writes
 * GPU work in the form of torch.profiler, chrome_torch.c what operators need beyond other spans.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/chrome.h"
#include "export/frame_text.h"
#include "export/value.h"
#include "output/json_writer.h"
#include "output/text.h"
#include "util/array.h"
#include "util/path.h"

struct task_key {
	u32 pid, tid;
};

void chrome__next_event(struct export *e)
{
	struct chrome *c = e->data;

	fputs(c->any ? ",\n" : "\n", e->out);
	c->any = true;
}

void chrome__put_name(struct export *e, const char *what, u32 pid, u32 tid, const char *name)
{
	chrome__next_event(e);
	fprintf(e->out, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":", what,
		chrome__number(pid), chrome__number(tid));
	json__print_text(e->out, name, strlen(name));
	fputs("}}", e->out);
}

/* Labels a process with its pid where its events have another number. */
static void put_label(struct export *e, u32 pid)
{
	char label[32];

	snprintf(label, sizeof(label), "pid %u", names__number(e->names, pid));
	chrome__put_name(e, "process_labels", pid, pid, label);
}

/* Viewers sort processes by this number, which is 0 where it is not stated. */
static void put_rank(struct export *e, u32 pid)
{
	s64 order = names__rank_order(e->names, pid);

	if (!order)
		return;
	chrome__next_event(e);
	fprintf(e->out,
		"{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%u,\"tid\":0,\"args\":{\"sort_index\":%lld}}",
		chrome__number(pid), order);
}

/* Names a process and a thread at their first event. */
int chrome__put_names(struct export *e, u32 pid, u32 tid)
{
	struct chrome *c = e->data;
	struct task_key key = { pid, tid };
	char room[300];
	const char *comm;
	u8 *named;

	named = map__get(&c->tasks, &key);
	if (!named)
		return -ENOMEM;
	if (*named || (!pid && !tid))
		return 0;
	*named = 1;
	comm = names__comm(e->names, pid, tid);
	if (comm && c->is_kineto) {
		snprintf(room, sizeof(room), "thread %u (%s)", names__number(e->names, tid), comm);
		comm = room;
	}
	if (comm)
		chrome__put_name(e, "thread_name", pid, tid, comm);
	if (c->is_kineto)
		chrome_kineto__put_thread(e, pid, tid);
	key.tid = 0;
	named = map__get(&c->tasks, &key);
	if (!named)
		return -ENOMEM;
	if (*named)
		return 0;
	*named = 1;
	if (c->is_kineto)
		chrome_kineto__put_process(e, pid);
	else
		put_rank(e, pid);
	comm = names__rank_title(e->names, room, sizeof(room), pid) ?:
								      names__title(e->names, room, sizeof(room), pid, 0);
	if (comm)
		chrome__put_name(e, "process_name", pid, pid, comm);
	if (comm && pid >= TRACE_TASK_IDS)
		put_label(e, pid);
	return 0;
}

/* Writes at least `least` decimal digits; fprintf would take a third of an export's time. */
static void put_digits(FILE *out, u64 value, size_t least)
{
	char buf[24], *p = buf + sizeof(buf);

	while (value || (size_t)(buf + sizeof(buf) - p) < least) {
		*--p = (char)('0' + value % 10);
		value /= 10;
	}
	fwrite(p, 1, (size_t)(buf + sizeof(buf) - p), out);
}

void chrome__put_us(FILE *out, u64 ns)
{
	put_digits(out, ns / 1000, 1);
	putc('.', out);
	put_digits(out, ns % 1000, 3);
}

void chrome__put_time(struct export *e, u64 time)
{
	chrome__put_us(e->out, time + ((const struct chrome *)e->data)->ahead);
}

static double us_of(u64 ns)
{
	return (double)((long double)ns / 1000);
}

/*
 * Readers hold times as doubles, and take the end of a span for ts + dur. Rounded, that may be later than the ts of a
 * span that begins at this end, or than the end of the span around it: then the duration gets more digits.
 */
void chrome__put_dur(struct export *e, u64 start, u64 end)
{
	u64 ahead = ((const struct chrome *)e->data)->ahead, ns = end > start ? end - start : 0;
	double from = us_of(start + ahead), to = us_of(start + ns + ahead), dur = us_of(ns), exact;

	fputs(",\"dur\":", e->out);
	if (from + dur == to) {
		chrome__put_us(e->out, ns);
		return;
	}
	exact = to - from;
	for (u32 i = 0; i < 4 && from + exact != to; i++)
		exact = nextafter(exact, from + exact < to ? HUGE_VAL : 0);
	/* of the durations with this end the one that is nearest to the true one, as other readers round to ns */
	for (u32 i = 0; i < 16 && from + exact == to; i++) {
		double middle = dur + (exact - dur) / 2;

		if (from + middle == to)
			exact = middle;
		else
			dur = middle;
	}
	fprintf(e->out, "%.17g", exact);
}

static void put_value(struct export *e, const struct view *v, const struct schema_field *f)
{
	struct field_value value;
	char buf[TEXT_NUMBER], label[STACK_LABEL];

	field_value__get(&value, e->names, v, f, true);
	if (field__is_stack(f) && value.u) {
		stacks__label(e->stacks, (u32)value.u, label, sizeof(label));
		json__print_text(e->out, label, strlen(label));
		return;
	}
	if (value.type == FIELD_IS_TEXT)
		json__print_text(e->out, value.text, value.len);
	else if (value.type == FIELD_IS_HEX)
		fprintf(e->out, "\"0x%llx\"", value.u);
	else if (value.type == FIELD_IS_DOUBLE && value.d - value.d == 0)
		fputs(text__double(buf, sizeof(buf), value.d), e->out);
	else if (value.type == FIELD_IS_DOUBLE)
		fputs("null", e->out);
	else if (value.type == FIELD_IS_U64 && value.u <= CHROME_EXACT)
		put_digits(e->out, value.u, 1);
	else if (value.type == FIELD_IS_U64)
		fprintf(e->out, value.u > CHROME_EXACT ? "\"%llu\"" : "%llu", value.u);
	else
		fprintf(e->out, value.s > (s64)CHROME_EXACT || value.s < -(s64)CHROME_EXACT ? "\"%lld\"" : "%lld",
			value.s);
}

static void put_args(struct export *e, const struct view *v, s64 cpu, u16 flags)
{
	const struct schema_event *event = v->event;
	u32 i;

	fprintf(e->out, "\"args\":{\"cpu\":%lld", cpu);
	for (i = 0; i < event->n; i++) {
		if (field__is_common(event, &event->fields[i]))
			continue;
		putc(',', e->out);
		json__print_text(e->out, event->fields[i].name, strlen(event->fields[i].name));
		putc(':', e->out);
		put_value(e, v, &event->fields[i]);
	}
	for (i = 0; i < 16; i++) {
		if ((flags >> i & 1) && event_flag__text((u16)(1u << i)))
			fprintf(e->out, ",\"%s\":true", event_flag__text((u16)(1u << i)));
	}
	chrome_torch__put_args(e, v);
	fputs("}}", e->out);
}

/* Returns the event's first stack, which is its own thread's; 0: it has none. */
static u32 stack_of(const struct view *v)
{
	u32 stack = 0;

	for (u32 i = 0; !stack && i < v->event->n; i++)
		if (field__is_stack(&v->event->fields[i]))
			stack = (u32)view__s64(v, &v->event->fields[i]);
	return stack;
}

static void put_stack(struct export *e, u32 stack)
{
	if (stacks__frame(e->stacks, stack))
		fprintf(e->out, "\"sf\":\"%u\",", stack);
}

static void put_frames(struct export *e)
{
	const struct stacks *s = e->stacks;
	char label[STACK_LABEL];

	fputs(",\"stackFrames\":{", e->out);
	for (u32 i = 0; i < stacks__count(s); i++) {
		u32 id = stacks__id(s, i);
		const struct stack_frame *f = stacks__frame(s, id);

		fprintf(e->out, "%s\n\"%u\":{\"name\":", i ? "," : "", id);
		stacks__label(s, id, label, sizeof(label));
		json__print_text(e->out, label, strlen(label));
		fputs(",\"category\":", e->out);
		json__print_text(e->out, f->file, strnlen(f->file, FRAME_TEXT_MAX));
		if (f->caller)
			fprintf(e->out, ",\"parent\":\"%u\"", f->caller);
		putc('}', e->out);
	}
	putc('}', e->out);
}

/* Returns the family, but for calls of CUDA and PyTorch the category that torch.profiler uses. */
static const char *category_of(const struct export *e, const struct view *v)
{
	const struct schema_family *family =
		schema__family_by_id(trace__schema(e->trace), (u8)EVENT_FAMILY(v->event->id));

	if (!family)
		return "?";
	if (v->event->is_span && !strcmp(family->name, "torch"))
		return strcmp(v->event->name, "torch_range") && strcmp(v->event->name, "torch_step") ?
			       "cpu_op" :
			       "user_annotation";
	if (v->event->is_call && !strcmp(family->name, "cuda"))
		return "cuda_runtime";
	return v->event->is_call && !strcmp(family->name, "cudadrv") ? "cuda_driver" : family->name;
}

static int put_event(struct export *e, const struct view *v, const struct common_fields *f)
{
	struct chrome *c = e->data;
	u32 pid = (u32)view__s64(v, f->pid), tid = (u32)view__s64(v, f->tid);
	u64 time = (u64)view__s64(v, f->time), start = (u64)view__s64(v, f->start);
	char buf[EVENT_TITLE], room[EVENT_TITLE];
	const char *title = event__title(e->names, v, (u16)view__s64(v, f->probe), buf, sizeof(buf));
	u16 flags = (u16)view__s64(v, f->flags);
	bool lasts = v->event->is_span && !(flags & EVENT_NO_DURATION);
	const struct interval span = { start < time ? start : time, time };
	const char *category = category_of(e, v);
	struct kineto_row row = { tid, span.start, span.end, path__begins_with(category, "cuda"), NULL };
	u32 stack = stack_of(v);

	if (c->is_kineto && row.is_cuda) {
		row.launch = kineto_ids__launch(&c->ids, tid, start);
		title = chrome_kineto__title(&row, title, room, sizeof(room));
		category = path__begins_with(title, "cuda") ? "cuda_runtime" : "cuda_driver";
	}
	if (chrome__put_names(e, pid, tid))
		return -ENOMEM;
	/* steps are no calls */
	if (lasts && c->is_kineto && strcmp(v->event->name, "torch_step") != 0 &&
	    chrome_python__add(e, pid, tid, &span, stack))
		return -ENOMEM;
	if (lasts && chrome__place(e, pid, tid, v->event->name, meaning__of(v->event)->lane, &span, &tid))
		return -ENOMEM;
	chrome__next_event(e);
	fputs(lasts ? "{\"ph\":\"X\",\"name\":" : "{\"ph\":\"i\",\"s\":\"t\",\"name\":", e->out);
	json__print_text(e->out, title, strlen(title));
	fputs(",\"cat\":", e->out);
	json__print_text(e->out, category, strlen(category));
	fputs(",\"pid\":", e->out);
	put_digits(e->out, chrome__number(pid), 1);
	fputs(",\"tid\":", e->out);
	put_digits(e->out, chrome__number(tid), 1);
	fputs(",\"ts\":", e->out);
	chrome__put_time(e, lasts ? start : time);
	if (lasts)
		chrome__put_dur(e, start, time);
	putc(',', e->out);
	put_stack(e, stack);
	if (c->is_kineto)
		chrome_kineto__put_args(e, v, &row);
	else
		put_args(e, v, view__s64(v, f->cpu), flags);
	if (chrome_torch__put_flow(e, v, &(struct drawn_place){ pid, tid, start }))
		return -ENOMEM;
	return ferror(e->out) ? -EIO : 0;
}

/* Events that are not on a time line, metadata but losses, and GPU work, which chrome_gpu.c writes, are omitted. */
static bool is_left_out(const struct schema_event *e)
{
	if (meaning__of(e)->is_part || !strcmp(e->name, "gpu_clock") || !strcmp(e->name, "gpu_sync"))
		return true;
	return e->role == EVENT_LISTS && strcmp(e->name, "meta_loss") != 0;
}

static bool is_memory(const struct schema_event *e)
{
	return !strcmp(e->name, "torch_alloc");
}

static bool is_module(const struct schema_event *e)
{
	return !strcmp(e->name, "torch_module");
}

static bool is_shape(const struct schema_event *e)
{
	return !strcmp(e->name, "torch_shape");
}

static int on_event(const struct view *v, void *arg)
{
	struct export *e = arg;
	struct chrome *c = e->data;

	if (c->event != v->event) {
		c->event = v->event;
		c->fields = common_fields__of(v->event);
	}
	if (c->is_kineto && is_memory(v->event))
		return chrome_torch__put_memory(e, v);
	if (c->is_kineto && is_shape(v->event))
		return chrome_kineto__add_shape(e, v);
	if (is_module(v->event))
		return chrome_python__add_module(e, v);
	return put_event(e, v, &c->fields);
}

int chrome__open(struct export *e)
{
	struct chrome *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	e->data = c;
	map__init(&c->tasks, sizeof(struct task_key), sizeof(u8));
	chrome__init_lanes(c);
	chrome_torch__init(c);
	chrome_python__init(c);
	chrome_kineto__init(c);
	c->order = order__new(on_event, e);
	return c->order ? 0 : -ENOMEM;
}

int chrome__only_kineto(struct export *e, u64 ahead)
{
	struct chrome *c = e->data;

	c->is_kineto = true;
	c->ahead = ahead;
	return chrome_python__read_gaps(e) ?: kineto_ids__load(&c->ids, e);
}

static int begin(struct export *e)
{
	const struct trace_head *head = e->facts->head;
	int err = chrome__open(e);

	if (err)
		return err;
	fprintf(e->out,
		"{\"displayTimeUnit\":\"ns\",\"otherData\":{\"clock\":\"CLOCK_MONOTONIC\",\"realtime_ahead_ns\":\"%lld\","
		"\"live_ns\":\"%llu\",\"stop_ns\":\"%llu\",\"traced_ns\":\"%llu\",\"hostname\":",
		(s64)(head->realtime - head->monotonic), e->facts->live, e->facts->stop, trace_facts__traced(e->facts));
	json__print_text(e->out, head->hostname, strlen(head->hostname));
	fputs("},\"traceEvents\":[", e->out);
	return 0;
}

/* torch.profiler's traces have calls of CUDA and of PyTorch, and the memory of tensors. */
bool chrome__is_kineto_family(const struct export *e, u8 id)
{
	static const char *const names[] = { "torch", "cuda", "cudadrv" };
	const struct schema_family *family = schema__family_by_id(trace__schema(e->trace), id);

	for (size_t i = 0; family && i < ARRAY_LEN(names); i++)
		if (!strcmp(family->name, names[i]))
			return true;
	return false;
}

/* Kineto leaves out the driver's calls that only look up a kernel. */
static bool is_in_kineto(const struct export *e, const struct schema_event *event)
{
	return is_memory(event) || is_module(event) || is_shape(event) ||
	       (event->is_span && strcmp(event->name, "cudadrv_function") != 0 &&
		chrome__is_kineto_family(e, (u8)EVENT_FAMILY(event->id)));
}

/* Sorts events by time, because only then is known which spans nest. */
int chrome__rows(struct export *e, const struct rows *rows)
{
	const struct schema_event *event = rows__event(rows);
	struct chrome *c = e->data;

	if (is_left_out(event) || (c->is_kineto ? !is_in_kineto(e, event) : is_module(event)))
		return 0;
	return order__add(c->order, rows);
}

int chrome__end(struct export *e)
{
	struct chrome *c = e->data;
	int err;

	if (!c)
		return 0;
	err = c->order ? order__finish(c->order) : 0;
	order__free(c->order);
	if (!err)
		chrome_python__close(e);
	if (!err)
		err = ferror(e->out) ? -EIO : chrome_torch__put_steps(e);
	if (!err)
		err = chrome__put_gpu_work(e) ?: chrome__put_gpu_metrics(e);
	/* events were only sorted until now; a trace without family proc names no process */
	if (!err && c->is_kineto && !c->any && !names__task(e->names, e->pid, e->pid)) {
		snprintf(e->why, sizeof(e->why), "the trace has no process %u", e->pid);
		err = -ESRCH;
	}
	if (c->is_kineto && !c->any)
		snprintf(e->note, sizeof(e->note), "no calls of PyTorch or CUDA were recorded in process %u",
			 names__number(e->names, e->pid));
	fputs("\n]", e->out);
	if (stacks__count(e->stacks))
		put_frames(e);
	fputs("}\n", e->out);
	map__free(&c->tasks);
	chrome__free_lanes(c);
	chrome_torch__free(c);
	chrome_python__free(c);
	chrome_kineto__free(c);
	free(c);
	return err ? err : ferror(e->out) ? -EIO : 0;
}

EXPORTER(chrome) = {
	.name = "chrome",
	.doc = "JSON for chrome://tracing and other viewers: spans, and GPUs as torch.profiler writes them",
	.begin = begin,
	.rows = chrome__rows,
	.end = chrome__end,
};
