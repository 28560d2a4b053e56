// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes the records of each interval into a file in memory, with the frames, functions and texts that they refer to.
 * These arrive once, so they are stored for later intervals. Tasks are in the names.
 */
#include "model/live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "core/meta.h"
#include "model/stacks.h"
#include "probes/gil/gil.h"
#include "probes/proc/proc.h"
#include "probes/sample/sample.h"
#include "probes/sched/sched.h"
#include "trace/format.h"
#include "util/array.h"
#include "util/recent.h"

/*
 * Frames per generation. BPF's table of frames has 65,536, and the worker's of native ones 2 x 32,768, so they have
 * evicted a frame that is evicted here, and send it again.
 */
#define FRAMES_MAX 131072
#define CODES_MAX  65536
/* Records that an interval has at most: the analysis takes about 1 us for each. */
#define RECORDS_PER_SECOND 16384
#define RECORDS_MAX	   500000

struct stored_frame {
	struct meta_frame record;
	u32 interval; /* number of the last one that it was written to */
};

struct stored_code {
	struct meta_code record;
	u32 interval;
};

/* Where the records of a kind have ids of frames and texts */
struct references {
	u16 stacks[4], strings[4]; /* offsets */
	u8 n_stacks, n_strings;
};

struct live {
	const struct schema *all;
	struct schema schema; /* of the kinds that an interval may have; all but its list of events is that of `all` */
	struct map kinds; /* u16 id of a stored kind -> struct references */
	struct names *names;
	struct recent frames, codes; /* u32 id -> struct stored_frame, struct stored_code */
	u32 cpus;
	struct sample_clock clock; /* the last one: it is written once a second, and holds until the next one */
	u64 lost;
	/* the interval that is being recorded */
	u32 interval; /* its number */
	struct trace_writer *writer; /* NULL: the first one has not begun */
	int fd;
	bool is_read; /* the file still has the interval before */
	struct map texts; /* u32 id -> u8: those that it has */
	u64 from, until; /* ns; until: an interval with too many records ends there */
	u64 records, unmeasured;
	/* the interval before */
	struct trace *trace;
	struct trace_facts facts;
	struct query query;
};

static bool is_stored(u16 id)
{
	switch (EVENT_FAMILY(id)) {
	case EVENT_FAMILY(ID_gil_wait):
	case EVENT_FAMILY(ID_sample_cpu):
	case EVENT_FAMILY(ID_sched_off):
		return true;
	case EVENT_FAMILY(ID_meta_loss):
		return IS_ONE_OF(id, ID_meta_loss, ID_meta_pause, ID_meta_unmeasured);
	default:
		return false;
	}
}

static void add_references(struct references *r, const struct schema_event *e)
{
	for (u32 i = 0; i < e->n; i++) {
		const struct schema_field *f = &e->fields[i];

		if (!strcmp(f->unit, "stack") && r->n_stacks < ARRAY_LEN(r->stacks))
			r->stacks[r->n_stacks++] = (u16)f->offset;
		else if (!strcmp(f->unit, "string") && r->n_strings < ARRAY_LEN(r->strings))
			r->strings[r->n_strings++] = (u16)f->offset;
	}
}

static int choose_kinds(struct live *l)
{
	const struct schema *all = l->all;

	l->schema = *all;
	l->schema.n_options = l->schema.n_events = 0;
	l->schema.events = calloc(all->n_events + 1, sizeof(*all->events));
	if (!l->schema.events)
		return -ENOMEM;
	for (u32 i = 0; i < all->n_events; i++) {
		const struct schema_event *e = &all->events[i];
		struct references *r = is_stored(e->id) ? map__get(&l->kinds, &e->id) : NULL;

		if (is_stored(e->id) && !r)
			return -ENOMEM;
		if (r)
			add_references(r, e);
		if (r || IS_ONE_OF(e->id, ID_meta_string, ID_meta_code, ID_meta_frame, ID_meta_cost))
			l->schema.events[l->schema.n_events++] = *e;
	}
	return 0;
}

int live__new(struct live **out, const struct schema *schema)
{
	struct live *l = calloc(1, sizeof(*l));
	int err;

	*out = l;
	if (!l)
		return -ENOMEM;
	l->fd = -1;
	l->all = schema;
	l->cpus = (u32)get_nprocs_conf();
	recent__init(&l->frames, sizeof(u32), sizeof(struct stored_frame), FRAMES_MAX);
	recent__init(&l->codes, sizeof(u32), sizeof(struct stored_code), CODES_MAX);
	map__init(&l->kinds, sizeof(u16), sizeof(struct references));
	map__init(&l->texts, sizeof(u32), sizeof(u8));
	err = names__create(&l->names, schema);
	return err ? err : choose_kinds(l);
}

void live__free(struct live *l)
{
	if (!l)
		return;
	trace_facts__free(&l->facts);
	trace__close(l->trace);
	trace_writer__free(l->writer);
	if (l->fd >= 0)
		close(l->fd);
	names__free(l->names);
	recent__free(&l->frames);
	recent__free(&l->codes);
	MAPS_FREE(&l->kinds, &l->texts);
	free(l->schema.events);
	free(l);
}

/* Writes the text into the interval, if it has not got it yet. */
static int write_text(struct live *l, u32 id)
{
	struct meta_string head = { .event = { .time = l->from, .id = ID_meta_string }, .string = id };
	const char *text = map__find(&l->texts, &id) ? "" : names__string(l->names, id);
	char record[sizeof(head) + TEXT_MAX];
	size_t len = strlen(text);

	if (!len)
		return 0;
	if (!map__get(&l->texts, &id))
		return -ENOMEM;
	memcpy(record, &head, offsetof(struct meta_string, text));
	memcpy(record + offsetof(struct meta_string, text), text, len);
	return trace_writer__append(l->writer, record, (u32)(offsetof(struct meta_string, text) + len));
}

static int write_code(struct live *l, u32 id)
{
	struct stored_code *c = recent__find(&l->codes, &id);
	int err;

	if (!c || c->interval == l->interval)
		return 0;
	c->interval = l->interval;
	c->record.event.time = l->from;
	err = trace_writer__append(l->writer, &c->record, sizeof(c->record));
	if (!err)
		err = write_text(l, c->record.name);
	return err ? err : write_text(l, c->record.file);
}

/* Writes the frames of a stack that the interval has not got yet. They count as used, so they are stored for longer. */
static int write_stack(struct live *l, u32 id)
{
	int err = 0;

	for (u32 depth = 0; !err && id && depth < STACKS_DEEPEST; depth++) {
		struct stored_frame *f = recent__find(&l->frames, &id);

		if (!f || f->interval == l->interval)
			break;
		f->interval = l->interval;
		f->record.event.time = l->from;
		id = f->record.caller;
		err = trace_writer__append(l->writer, &f->record, sizeof(f->record));
		if (!err)
			err = write_code(l, f->record.code);
	}
	return err;
}

/* A record that refers to the frame may have come before it, from the ring of another CPU. */
static int on_frame(struct live *l, const struct meta_frame *record)
{
	struct stored_frame *f = record->frame ? recent__get(&l->frames, &record->frame) : NULL;

	if (f)
		*f = (struct stored_frame){ .record = *record };
	if (!f || !l->writer)
		return f || !record->frame ? 0 : -ENOMEM;
	return write_stack(l, record->frame);
}

static int on_code(struct live *l, const struct meta_code *record)
{
	struct stored_code *c = record->code ? recent__get(&l->codes, &record->code) : NULL;

	if (c)
		*c = (struct stored_code){ .record = *record };
	return c || !record->code ? 0 : -ENOMEM;
}

/*
 * Is there room for one more record at this time? If there were too many, the interval ends here, and gets only those
 * records that are still missing until then.
 */
static bool has_room(struct live *l, u64 time)
{
	u64 max = RECORDS_PER_SECOND + (time - l->from) / 1000 * RECORDS_PER_SECOND / 1000000;

	max = max < RECORDS_MAX ? max : RECORDS_MAX;
	if (l->records >= max && l->until == ~0ull)
		l->until = time;
	if (l->records < 2 * max)
		return true;
	l->lost++;
	return false;
}

static int store(struct live *l, const struct event *head, const char *record, u32 size)
{
	const struct references *r;
	int err;
	u64 start;
	u32 id;

	if (!l->writer || head->time < l->from || head->time > l->until || !has_room(l, head->time))
		return 0;
	r = map__find(&l->kinds, &head->id);
	if (!r)
		return 0;
	err = trace_writer__append(l->writer, record, size);
	/* the writer has refused a record that does not fit its kind */
	if (err == -EINVAL)
		return 0;
	l->records++;
	for (u32 i = 0; !err && i < r->n_stacks; i++) {
		memcpy(&id, record + r->stacks[i], sizeof(id));
		err = write_stack(l, id);
	}
	for (u32 i = 0; !err && i < r->n_strings; i++) {
		memcpy(&id, record + r->strings[i], sizeof(id));
		err = write_text(l, id);
	}
	if (head->id == ID_sample_clock)
		memcpy(&l->clock, record, sizeof(l->clock));
	if (head->id != ID_meta_unmeasured)
		return err;
	memcpy(&start, record + offsetof(struct meta_unmeasured, start), sizeof(start));
	l->unmeasured += head->time - (start > l->from ? start : l->from);
	return err;
}

static int on_name(struct live *l, const void *record, u32 size)
{
	struct view v;

	return view__of_record(&v, l->all, record, size) ? names__feed(l->names, &v) : 0;
}

/* Empties the file for the records of the next interval. */
static int continue_file(struct live *l)
{
	if (!l->is_read)
		return 0;
	l->is_read = false;
	return trace_writer__rewind(l->writer);
}

int live__feed(struct live *l, const void *record, u32 size)
{
	int err = continue_file(l);
	struct event head;

	if (err || size < sizeof(head))
		return err;
	memcpy(&head, record, sizeof(head));
	if (head.id == ID_meta_string || EVENT_FAMILY(head.id) == EVENT_FAMILY(ID_proc_task))
		return on_name(l, record, size);
	if (head.id == ID_meta_frame && size == sizeof(struct meta_frame))
		return on_frame(l, record);
	if (head.id == ID_meta_code && size == sizeof(struct meta_code))
		return on_code(l, record);
	return is_stored(head.id) ? store(l, &head, record, size) : 0;
}

static int create_file(struct live *l)
{
	l->fd = memfd_create("sonde-interval", MFD_CLOEXEC);
	if (l->fd < 0)
		return -errno;
	return trace_writer__create(&l->writer, l->fd, &l->schema, &(struct trace_head){ .cpus = l->cpus });
}

/* Writes what readers need to know about the interval: its length, and what holds in it. */
static int write_facts(struct live *l, u64 to, u64 unmeasured)
{
	struct meta_cost cost = { .event = { .time = to, .id = ID_meta_cost }, .wall = to - l->from };
	/* that has not ended yet */
	struct meta_unmeasured last = { .event = { .time = to, .id = ID_meta_unmeasured },
					.start = to - (unmeasured - l->unmeasured) };
	int err = trace_writer__append(l->writer, &cost, sizeof(cost));

	if (!err && unmeasured > l->unmeasured && last.start >= l->from && last.start < to)
		err = trace_writer__append(l->writer, &last, sizeof(last));
	l->clock.event.time = to;
	return err || !l->clock.event.id ? err : trace_writer__append(l->writer, &l->clock, sizeof(l->clock));
}

/* The head of the file is read once. */
static int open_trace(struct live *l)
{
	char err[256];
	int fd;

	if (l->trace)
		return trace__reopen(l->trace, err, sizeof(err));
	fd = fcntl(l->fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : trace__open_fd(&l->trace, fd, err, sizeof(err));
}

static int end_interval(struct live *l, u64 to, u64 unmeasured)
{
	int err = write_facts(l, to, unmeasured);

	if (!err)
		err = trace_writer__finish(l->writer);
	if (!err)
		err = open_trace(l);
	trace_facts__free(&l->facts);
	if (!err)
		err = trace_facts__load(&l->facts, l->trace, "", l->from, to);
	if (err)
		return err;
	l->query = (struct query){
		.trace = l->trace, .from = l->from, .to = to, .start = l->from, .names = l->names, .facts = &l->facts
	};
	query__limit(&l->query, &l->facts);
	return 0;
}

int live__cut(struct live *l, u64 now, u64 unmeasured, const struct query **out)
{
	bool is_first = !l->writer;
	int err = is_first ? create_file(l) : continue_file(l);

	*out = NULL;
	if (!err && !is_first)
		err = end_interval(l, l->until < now ? l->until : now, unmeasured);
	if (!err && !is_first)
		*out = &l->query;
	l->is_read = !is_first;
	l->interval++;
	map__free(&l->texts);
	l->from = now;
	l->until = ~0ull;
	l->records = l->unmeasured = 0;
	return err;
}

u64 live__lost(const struct live *l)
{
	return l->lost;
}
