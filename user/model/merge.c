// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/merge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/meta.h"
#include "model/merge_private.h"

/* Rows that are read at a time, by the time of their end, so that the merged trace is nearly in order. */
#define WINDOW_EVENTS (1u << 20)
#define CPU_NUMBERS   (1u << 16) /* that the header of an event can hold */

int merge__fail(struct merge *m, int code, const char *file, const char *what)
{
	snprintf(m->err, m->len, "%s: %s", file, what);
	return code;
}

/* Traces of one boot of one machine share a clock. */
static bool same_boot(const struct trace_head *a, const struct trace_head *b)
{
	return a->boot_id && b->boot_id && *a->boot_id && !strcmp(a->boot_id, b->boot_id);
}

u32 merge__host(struct trace *const *traces, u32 i)
{
	u32 hosts = 0, j, k;

	for (j = 0; j < i; j++)
		if (same_boot(trace__head(traces[i]), trace__head(traces[j])))
			return merge__host(traces, j);
	/* a new machine: its number is the count of machines before it */
	for (j = 0; j < i; j++) {
		for (k = 0; k < j; k++)
			if (same_boot(trace__head(traces[j]), trace__head(traces[k])))
				break;
		hosts += k == j;
	}
	return hosts;
}

static int number_hosts(struct merge *m, struct trace *const *traces)
{
	for (u32 i = 0; i < m->n; i++) {
		m->inputs[i].host = merge__host(traces, i);
		m->inputs[i].same_clock = !m->inputs[i].host;
		if (m->inputs[i].host >= MERGE_MAX)
			return merge__fail(m, -E2BIG, m->inputs[i].file, "more machines than can be merged");
	}
	return 0;
}

static int load_clocks(struct merge *m)
{
	for (u32 i = 0; i < m->n; i++) {
		int err = timebase__load(&m->inputs[i].base, m->inputs[i].trace);

		if (err == -ENODATA && m->n > 1)
			return merge__fail(m, err, m->inputs[i].file, "it has no snapshot of its clocks to merge by");
		if (err)
			return err;
	}
	m->base = &m->inputs[0].base;
	return 0;
}

/* Converts a moment of the input to the merged trace's clock. */
static u64 shift(const struct merge *m, const struct merge_input *in, u64 moment)
{
	if (!moment || in->same_clock)
		return moment;
	return timebase__monotonic(m->base, moment + (u64)timebase__ahead(&in->base, moment));
}

static int intern(struct merge *m, u32 id, u32 *out)
{
	u32 *known = map__get(&m->input->strings, &id);
	const char *text;

	if (!known)
		return -ENOMEM;
	if (!*known) {
		text = trace__string(m->input->trace, id);
		*known = trace_writer__intern(m->writer, text, strlen(text));
	}
	*out = *known;
	return 0;
}

/* Renumbers ids of frames or code, which each trace numbers from 1. Ids that no event describes get a number, too. */
static int renumber(struct map *ids, u32 *last, u64 *value)
{
	u32 id = (u32)*value, *known;

	if (!id)
		return 0;
	known = map__get(ids, &id);
	if (!known)
		return -ENOMEM;
	if (!*known)
		*known = ++*last;
	*value = *known;
	return 0;
}

/* Returns whether the field holds the number of a probe. */
static bool names_probe(const struct schema_event *e, const struct schema_field *f)
{
	return !strcmp(f->name, "probe") ||
	       (!strcmp(f->name, "number") && (!strcmp(e->name, "meta_probe") || !strcmp(e->name, "meta_hits")));
}

static bool names_object(const struct schema_event *e, const struct schema_field *f)
{
	return !strcmp(f->name, "object") && (!strcmp(e->name, "meta_object") || !strcmp(e->name, "meta_loss"));
}

static bool is_moment(const struct schema_field *f)
{
	/* by name: in traces from before unit `moment` */
	return !strcmp(f->unit, "moment") || !strcmp(f->name, "time") || !strcmp(f->name, "start");
}

/* Of these facts.c must know the input. They have no CPU, so that field has its number. */
static bool states_recorded_time(const struct schema_event *e)
{
	return !strcmp(e->name, "meta_pause") || !strcmp(e->name, "meta_unmeasured") || !strcmp(e->name, "meta_cost") ||
	       !strcmp(e->name, "meta_end");
}

static int translate(struct merge *m, const struct schema_event *e, const struct schema_field *f, u64 *value)
{
	struct merge_input *in = m->input;
	u32 id = 0;
	int err = 0;

	if (!strcmp(f->unit, "string") && f->size == 4) {
		err = intern(m, (u32)*value, &id);
		*value = id;
	} else if (!strcmp(f->unit, "stack") && f->size >= 4) {
		err = renumber(&in->frames, &m->frames, value);
	} else if (!strcmp(f->unit, "code") && f->size >= 4) {
		err = renumber(&in->codes, &m->codes, value);
	} else if (is_moment(f)) {
		*value = shift(m, in, *value);
	} else if (in->host && *value &&
		   (!strcmp(f->unit, "task") || !strcmp(f->name, "pid") || !strcmp(f->name, "tid"))) {
		*value += (u64)in->host * MERGE_TASKS;
	} else if (names_probe(e, f)) {
		*value = in->probes[(u16)*value];
	} else if (names_object(e, f) && *value) {
		*value += in->objects;
	} else if (!strcmp(f->name, "cpu")) {
		*value = states_recorded_time(e) ? (u64)(in - m->inputs) : *value + in->first_cpu;
	}
	return err;
}

static int put_field(struct merge *m, const struct rows *rows, u32 i, const struct schema_event *e,
		     const struct schema_field *to, const struct schema_field *from, u32 *size)
{
	const char *text;
	u64 value;
	u32 len;
	int err;

	if (to->type == FIELD_TEXT || to->type == FIELD_TAIL) {
		text = rows__text(rows, from, i, &len);
		if (to->type == FIELD_TEXT && len > to->size)
			len = to->size;
		memcpy(m->record + to->offset, text, len);
		*size += to->type == FIELD_TAIL ? len : 0;
		return 0;
	}
	if (to->type == FIELD_FLOAT) {
		double d = rows__double(rows, from, i);
		float s = (float)d;

		memcpy(m->record + to->offset, to->size == sizeof(d) ? (void *)&d : &s, to->size);
		return 0;
	}
	value = rows__u64(rows, from, i);
	err = translate(m, e, to, &value);
	memcpy(m->record + to->offset, &value, to->size);
	return err;
}

static int put_row(struct merge *m, const struct rows *rows, u32 i, const struct schema_event *to)
{
	const struct schema_event *from = rows__event(rows);
	u32 size = to->size;
	int err = 0;

	memset(m->record, 0, to->size);
	for (u32 j = 0; !err && j < to->n; j++) {
		const struct schema_field *f = schema_event__field(from, to->fields[j].name);

		if (f)
			err = put_field(m, rows, i, to, &to->fields[j], f, &size);
	}
	return err ? err : trace_writer__append(m->writer, m->record, size);
}

/* Is the event left out by merge__part()? */
static bool is_outside(const struct merge *m, u64 start, u64 end, u32 pid)
{
	const struct trace_window *time = &m->part->time;

	return (end <= time->from && start < time->from) || start >= time->to ||
	       (pid && !trace_ids__have(&m->part->pids, pid));
}

static int on_rows(const struct rows *rows, void *arg)
{
	struct merge *m = arg;
	const struct schema_event *from = rows__event(rows), *to = schema__event_by_id(&m->schema, from->id);
	const struct schema_field *time = schema_event__field(from, "time");
	const struct schema_field *start = from->is_span ? schema_event__field(from, "start") : time;
	const struct schema_field *pid = schema_event__field(from, "pid");
	bool is_limited = m->part && from->role < EVENT_DESCRIBES;
	int err = 0;

	/*
	 * Texts are written when first used and probes beforehand; other machines' clocks do not apply to the merged
	 * trace.
	 */
	if (!strcmp(from->name, "meta_string") || !strcmp(from->name, "meta_probe") ||
	    (!strcmp(from->name, "meta_clock") && m->input != m->inputs))
		return 0;
	for (u32 i = 0; !err && i < rows__count(rows); i++) {
		u64 end = rows__u64(rows, time, i);

		if (end >= m->from && end < m->to &&
		    !(is_limited &&
		      is_outside(m, rows__u64(rows, start, i), end, pid ? (u32)rows__u64(rows, pid, i) : 0)))
			err = put_row(m, rows, i, to);
	}
	return err;
}

/* Numbers and writes the probes. A probe of the same name in another trace gets its own number. */
static int on_probes(const struct rows *rows, void *arg)
{
	struct merge *m = arg;
	const struct schema_event *from = rows__event(rows);
	const struct schema_field *number = schema_event__field(from, "number");
	int err = 0;

	for (u32 i = 0; !err && i < rows__count(rows); i++) {
		u16 *mine = &m->input->probes[(u16)rows__u64(rows, number, i)];

		if (m->probes == 0xffff)
			return merge__fail(m, -E2BIG, m->input->file, "more probes than one trace can name");
		if (!*mine)
			*mine = (u16)++m->probes;
		err = put_row(m, rows, i, schema__event_by_id(&m->schema, from->id));
	}
	return err;
}

static int on_objects(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), object);
	u16 *most = arg;

	for (u32 i = 0; i < rows__count(rows); i++)
		if ((u16)rows__u64(rows, object, i) > *most)
			*most = (u16)rows__u64(rows, object, i);
	return 0;
}

/* Numbers what events refer to by number, and writes the probes. */
static int number_references(struct merge *m)
{
	int err = 0;

	for (u32 i = 0; !err && i < m->n; i++) {
		struct merge_input *in = &m->inputs[i];
		u16 most = 0;

		m->input = in;
		in->objects = m->objects;
		map__init(&in->strings, sizeof(u32), sizeof(u32));
		map__init(&in->frames, sizeof(u32), sizeof(u32));
		map__init(&in->codes, sizeof(u32), sizeof(u32));
		in->probes = calloc(0x10000, sizeof(*in->probes));
		if (!in->probes)
			return -ENOMEM;
		err = trace__read_kind(in->trace, "meta_probe", on_probes, m);
		if (!err)
			err = trace__read_kind(in->trace, "meta_object", on_objects, &most);
		m->objects += most;
	}
	return err;
}

/* Writes the trace in parts of time: for each part the rows that end in it, input after input. */
static int copy_events(struct merge *m)
{
	u64 first = ~0ull, last = 0, events = 0, step, until;
	bool is_last = false;
	int err = 0;

	for (u32 i = 0; i < m->n; i++) {
		const struct trace_summary *s = trace__summary(m->inputs[i].trace);
		u64 begin = shift(m, &m->inputs[i], s->first), end = shift(m, &m->inputs[i], s->last);

		first = begin < first ? begin : first;
		last = end > last ? end : last;
		events += s->events;
	}
	step = (last - first) / (events / WINDOW_EVENTS + 1) + 1;
	for (u64 at = first; !err && !is_last && at <= last; at = until) {
		until = trace_window__step_end(at, step, last);
		is_last = until == last;
		for (u32 i = 0; !err && i < m->n; i++) {
			struct trace_filter filter = {};

			m->input = &m->inputs[i];
			/* from the merged trace's clock to the input's: the inverse of shift() */
			m->from = m->input->same_clock ?
					  at :
					  timebase__monotonic(&m->input->base, at + (u64)timebase__ahead(m->base, at));
			m->to = m->input->same_clock ?
					until :
					timebase__monotonic(&m->input->base,
							    until + (u64)timebase__ahead(m->base, until));
			/* rounding must not omit the first and last rows */
			m->from = at == first ? 0 : m->from;
			m->to = is_last ? ~0ull : m->to;
			filter.from = m->from;
			filter.to = m->to == ~0ull ? 0 : m->to;
			err = trace__read(m->input->trace, &filter, on_rows, m);
		}
		if (!err)
			err = trace_writer__flush(m->writer);
	}
	return err;
}

/* Moves the start to that of the earliest input, because times are printed relative to it. */
static void begin_early(struct merge *m, struct trace_head *head)
{
	u64 first = head->monotonic;

	for (u32 i = 0; i < m->n; i++) {
		u64 begin = shift(m, &m->inputs[i], trace__head(m->inputs[i].trace)->monotonic);

		if (begin && begin < first)
			first = begin;
	}
	head->boottime -= head->monotonic - first;
	head->realtime -= head->monotonic - first;
	head->monotonic = first;
}

static bool in_list(const char *list, const char *item, size_t len)
{
	for (const char *at = list; (at = strstr(at, item)) != NULL; at++)
		if ((at == list || at[-1] == ',') && (!at[len] || at[len] == ','))
			return true;
	return false;
}

/* Writes the union of the families that the inputs recorded. */
static void join_families(struct merge *m, char *buf, size_t len)
{
	size_t used = 0;

	*buf = 0;
	for (u32 i = 0; i < m->n; i++) {
		const char *at = trace__head(m->inputs[i].trace)->families;
		char item[64];
		size_t n;

		for (; at && *at; at += n + (at[n] == ',')) {
			n = strcspn(at, ",");
			snprintf(item, sizeof(item), "%.*s", (int)n, at);
			if (used + n + 2 < len && n < sizeof(item) && !in_list(buf, item, n))
				used += (size_t)snprintf(buf + used, len - used, "%s%s", used ? "," : "", item);
		}
	}
}

/* States that what was recorded outside of the part is a pause. */
static int put_pauses(struct merge *m)
{
	const struct trace_summary *s = trace__summary(m->inputs[0].trace);
	struct meta_pause before = { .event = { .time = m->part->time.from, .id = ID_meta_pause }, .start = s->first };
	struct meta_pause after = { .event = { .time = s->last, .id = ID_meta_pause }, .start = m->part->time.to };
	int err = before.start < before.event.time ? trace_writer__append(m->writer, &before, sizeof(before)) : 0;

	return !err && after.start < after.event.time ? trace_writer__append(m->writer, &after, sizeof(after)) : err;
}

/* Numbers the CPUs of each machine after those of the machines before it. Returns the most that one of them has. */
static u32 number_cpus(struct merge *m)
{
	u32 cpus = 0, hosts = 0;

	for (u32 i = 0; i < m->n; i++) {
		u32 own = trace__head(m->inputs[i].trace)->cpus;

		cpus = own > cpus ? own : cpus;
		hosts = m->inputs[i].host >= hosts ? m->inputs[i].host + 1 : hosts;
	}
	for (u32 i = 0; i < m->n && (u64)hosts * cpus <= CPU_NUMBERS; i++)
		m->inputs[i].first_cpu = m->inputs[i].host * cpus;
	return cpus;
}

static int run(struct merge *m, struct trace *const *traces, int fd)
{
	struct trace_head head = *trace__head(m->inputs[0].trace);
	char command[512], families[512];
	int err = number_hosts(m, traces);

	head.cpus = number_cpus(m);
	if (!err)
		err = load_clocks(m);
	if (!err)
		err = merge__join_schemas(m);
	if (err)
		return err;
	begin_early(m, &head);
	join_families(m, families, sizeof(families));
	head.families = families;
	snprintf(command, sizeof(command), "%s and %u more merged", head.command ? head.command : "?", m->n - 1);
	head.command = m->part ? head.command : command;
	err = trace_writer__create(&m->writer, fd, &m->schema, &head);
	if (!err)
		err = number_references(m);
	if (!err)
		err = copy_events(m);
	if (!err && m->part)
		err = put_pauses(m);
	return err ? err : trace_writer__finish(m->writer);
}

static int write_merged(struct merge m, struct trace *const *traces, const char *const *files, int fd)
{
	char *err = m.err;
	size_t len = m.len;
	u32 n = m.n;
	int ret;

	*err = 0;
	m.inputs = calloc(n, sizeof(*m.inputs));
	m.record = calloc(1, 1 << 17);
	ret = m.inputs && m.record ? 0 : -ENOMEM;
	for (u32 i = 0; !ret && i < n; i++) {
		m.inputs[i].trace = traces[i];
		m.inputs[i].file = files[i];
	}
	if (!ret)
		ret = run(&m, traces, fd);
	if (ret && !*err)
		snprintf(err, len, "cannot merge the traces: %s", strerror(-ret));
	for (u32 i = 0; m.inputs && i < n; i++) {
		timebase__free(&m.inputs[i].base);
		free(m.inputs[i].probes);
		if (!m.inputs[i].strings.key_size)
			continue;
		MAPS_FREE(&m.inputs[i].strings, &m.inputs[i].frames, &m.inputs[i].codes);
	}
	trace_writer__free(m.writer);
	free(m.schema.events);
	free(m.schema.enums);
	free(m.schema.families);
	free(m.inputs);
	free(m.record);
	return ret;
}

int merge__traces(struct trace *const *traces, const char *const *files, u32 n, int fd, char *err, size_t len)
{
	return write_merged((struct merge){ .n = n, .err = err, .len = len }, traces, files, fd);
}

int merge__part(struct trace *t, const struct merge_part *part, int fd, char *err, size_t len)
{
	struct merge m = { .n = 1, .err = err, .len = len, .part = part };
	const char *file = "the trace";

	return write_merged(m, &t, &file, fd);
}
